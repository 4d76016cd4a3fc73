"""Authentication: tokens of the shop itself, and of an issuer that it trusts."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from pydantic import SecretStr

from infra.settings import Settings
from shared.errors import OperatorError
from shared.http.auth import Principal, Tokens
from shared.http.problems import Problem

pytestmark = pytest.mark.anyio

SECRET = "a secret of more than thirty-two characters"
SETTINGS = Settings(auth_secret=SecretStr(SECRET))
HOUR = 3600.0


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def signed(secret: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    """Signs a token as the shop would, with these changes; None leaves a claim out."""
    claims = {
        "iss": "till-roll",
        "aud": "till-roll",
        "sub": "ann",
        "roles": ["customer"],
        "exp": int(time.time()) + 3600,
    } | changes
    return jwt.encode({name: c for name, c in claims.items() if c is not None}, secret, algorithm)


async def refusal(tokens: Tokens, authorization: str | None) -> Problem:
    with pytest.raises(Problem) as problem:
        await tokens.principal(authorization)
    assert problem.value.status == 401
    assert problem.value.headers == {"WWW-Authenticate": "Bearer"}
    return problem.value


async def test_a_token_names_the_caller_it_was_issued_to_and_the_roles() -> None:
    tokens = Tokens(SETTINGS)
    token = tokens.mint("ann", ["customer", "support"], HOUR)
    expected = Principal("ann", frozenset({"customer", "support"}))
    assert await tokens.principal(f"Bearer {token}") == expected
    assert await Tokens(SETTINGS).principal(f"Bearer {token}") == expected, "another process of the shop"
    assert await tokens.principal(f"Bearer {token}") == expected, "and again"


@pytest.mark.parametrize("authorization", [None, "", "Basic YW5uOmFubg==", "bearer", "Bearer"])
async def test_a_request_without_a_token_is_unauthenticated(authorization: str | None) -> None:
    assert (await refusal(Tokens(SETTINGS), authorization)).code == "unauthenticated"


FORGERIES = {
    "signed with another secret": signed("another secret of more than thirty-two characters"),
    "not signed at all": jwt.encode({"sub": "ann", "iss": "till-roll"}, "", "none"),
    "for another audience": signed(aud="another-shop"),
    "of another issuer": signed(iss="https://elsewhere.example"),
    "of no issuer": signed(iss=None),
    "for nobody": signed(sub=None),
    "that never expires": signed(exp=None),
    "with another's claims": ".".join(
        [*signed().split(".")[:1], signed(sub="bob").split(".")[1], signed().split(".")[2]]
    ),
    "not a token": "garbage",
    "of dots": "..",
    "empty": "",
    "not even text": "\xe4\xf6\xfc.\xe4.\xe4",
}


@pytest.mark.parametrize("kind", FORGERIES)
async def test_a_forged_token_is_refused(kind: str) -> None:
    assert (await refusal(Tokens(SETTINGS), f"Bearer {FORGERIES[kind]}")).code == "token-invalid"


async def test_the_token_that_the_forgeries_are_variations_of_is_valid() -> None:
    assert (await Tokens(SETTINGS).principal(f"Bearer {signed()}")).subject == "ann"


async def test_an_expired_token_has_its_own_problem_type() -> None:
    tokens = Tokens(SETTINGS)
    assert (await refusal(tokens, f"Bearer {tokens.mint('ann', ['customer'], -1)}")).code == "token-expired"


async def test_a_token_that_was_good_is_refused_once_it_has_expired() -> None:
    tokens = Tokens(SETTINGS)
    token = signed(exp=int(time.time()) + 2)
    await tokens.principal(f"Bearer {token}")
    deadline = time.monotonic() + 5
    while time.time() < jwt.decode(token, options={"verify_signature": False})["exp"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)  # noqa: ASYNC251 - nothing else runs here
    assert (await refusal(tokens, f"Bearer {token}")).code == "token-expired"


async def test_the_roles_of_a_token_are_those_it_was_signed_with() -> None:
    principal = await Tokens(SETTINGS).principal(f"Bearer {signed(roles=['operator', 'analyst'])}")
    assert principal.roles == {"operator", "analyst"}


@pytest.mark.parametrize("claim", [None, [], "operator", {"operator": True}, [["operator"]], [7, None], 7])
async def test_a_roles_claim_that_is_no_list_of_names_grants_no_role(claim: Any) -> None:
    assert (await Tokens(SETTINGS).principal(f"Bearer {signed(roles=claim)}")).roles == frozenset()


async def test_a_role_that_no_route_asks_for_opens_no_door() -> None:
    emperor = await Tokens(SETTINGS).principal(f"Bearer {signed(roles=['emperor'])}")
    with pytest.raises(Problem, match="operator"):
        emperor.require("operator")


def test_a_role_is_needed_where_it_is_asked_for() -> None:
    ann = Principal("ann", frozenset({"customer"}))
    ann.require("customer")
    ann.require("operator", "customer")
    with pytest.raises(Problem, match="operator or support") as forbidden:
        ann.require("operator", "support")
    assert (forbidden.value.status, forbidden.value.code) == (403, "forbidden")


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_shop_without_a_decent_secret_does_not_open(secret: str) -> None:
    with pytest.raises(OperatorError, match="TILL_AUTH_SECRET"):
        Tokens(Settings(auth_secret=SecretStr(secret)))


class Issuer:
    """An OpenID provider as a resource server sees it: discovery, and keys that it may change."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.rotate("first")
        issuer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = (
                    {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                    if self.path == "/.well-known/openid-configuration"
                    else {"keys": issuer.public_keys()}
                )
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(document).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def rotate(self, key_id: str) -> None:
        self.keys = {key_id: rsa.generate_private_key(65537, 2048)}

    def public_keys(self) -> list[dict[str, Any]]:
        return [
            {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": key_id, "alg": "RS256", "use": "sig"}
            for key_id, key in self.keys.items()
        ]

    def token(self, key: Any = None, algorithm: str = "RS256", **changes: Any) -> str:
        [(key_id, own)] = self.keys.items()
        claims = {"iss": self.url, "aud": "till-roll", "sub": "olga", "roles": ["operator"]}
        return jwt.encode(
            claims | {"exp": int(time.time()) + 60} | changes, key or own, algorithm, headers={"kid": key_id}
        )


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield issuer
    issuer.server.shutdown()
    thread.join()
    issuer.server.server_close()


def trusting(issuer: Issuer) -> Tokens:
    return Tokens(Settings(auth_secret=SecretStr(SECRET), auth_issuer=issuer.url))


async def test_a_token_of_the_issuer_the_shop_trusts_is_accepted_beside_its_own(issuer: Issuer) -> None:
    tokens = trusting(issuer)
    assert await tokens.principal(f"Bearer {issuer.token()}") == Principal("olga", frozenset({"operator"}))
    assert (await tokens.principal(f"Bearer {tokens.mint('ann', ['customer'], HOUR)}")).subject == "ann"


async def test_changed_keys_of_the_issuer_are_fetched_again(issuer: Issuer) -> None:
    tokens = trusting(issuer)
    await tokens.principal(f"Bearer {issuer.token()}")
    old = issuer.token(sub="mallory")
    issuer.rotate("second")
    assert (await tokens.principal(f"Bearer {issuer.token()}")).subject == "olga"
    assert (await refusal(tokens, f"Bearer {old}")).code == "token-invalid"


async def test_a_token_in_the_issuers_name_needs_the_issuers_key(issuer: Issuer) -> None:
    tokens = trusting(issuer)
    await tokens.principal(f"Bearer {issuer.token()}")
    other = rsa.generate_private_key(65537, 2048)
    assert (await refusal(tokens, f"Bearer {issuer.token(other)}")).code == "token-invalid"
    assert (await refusal(tokens, f"Bearer {signed(iss=issuer.url)}")).code == "token-invalid"


async def test_the_public_key_of_the_issuer_is_no_secret_to_sign_with(issuer: Issuer) -> None:
    """The oldest trick is HS256 signed with the public key."""
    [key] = issuer.keys.values()
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header, claims, _ = issuer.token().split(".")
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": "first"}).encode()).decode()
    signature = jwt.utils.base64url_encode(hmac.sign(f"{head}.{claims}".encode(), pem)).decode()
    assert (await refusal(trusting(issuer), f"Bearer {head}.{claims}.{signature}")).code == "token-invalid"
    assert header != head


async def test_the_shops_own_tokens_are_not_taken_from_the_issuer(issuer: Issuer) -> None:
    forged = issuer.token(iss="till-roll")
    assert (await refusal(trusting(issuer), f"Bearer {forged}")).code == "token-invalid"


async def test_while_the_issuer_is_down_only_the_shops_own_tokens_are_accepted(issuer: Issuer) -> None:
    tokens = trusting(issuer)
    issuer.server.shutdown()
    issuer.server.server_close()
    with pytest.raises(OperatorError, match="issuer"):
        await tokens.principal(f"Bearer {issuer.token()}")
    assert (await tokens.principal(f"Bearer {tokens.mint('ann', ['customer'], HOUR)}")).subject == "ann"
