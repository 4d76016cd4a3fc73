"""Who is calling: bearer tokens (JWT), minted here for guests and local operators, or by any OIDC issuer."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import httpx
import jwt

from shared.errors import OperatorError
from shared.http.problems import Problem, unauthenticated
from shared.settings import Settings

Role = Literal["customer", "support", "operator", "analyst"]
ROLES: tuple[Role, ...] = get_args(Role)
ISSUER = "till-roll"
CACHED_TOKENS = 50_000
ASKS, ASKS_WITHIN_SECONDS = 5, 30.0
"""An issuer is asked for its keys no more often than that, whatever key ids strangers make up."""


@dataclass(frozen=True, slots=True)
class Principal:
    subject: str
    roles: frozenset[str]

    def require(self, *roles: Role) -> None:
        if self.roles.isdisjoint(roles):
            raise Problem(403, "forbidden", f"This needs the role {' or '.join(roles)}.")

    def may_see(self, customer_id: str) -> bool:
        """What is that customer's: they themselves, and support."""
        return customer_id == self.subject or "support" in self.roles


class Tokens:
    def __init__(self, settings: Settings) -> None:
        self._secret = settings.auth_secret.get_secret_value()
        if len(self._secret) < 32:
            raise OperatorError(
                "TILL_AUTH_SECRET is missing or shorter than 32 characters.",
                "`till up` generates one; elsewhere set it, for example with: openssl rand -base64 32",
            )
        self._audience = settings.auth_audience
        self._oidc = settings.auth_issuer
        self._keys: jwt.PyJWKSet | None = None
        self._asked = deque([-ASKS_WITHIN_SECONDS] * ASKS, maxlen=ASKS)
        # A signature is checked once; after that a known token costs a look-up, and its expiry.
        self._verified: dict[str, tuple[Principal, float]] = {}

    def mint(self, subject: str, roles: Sequence[Role], seconds: float) -> str:
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": self._audience,
            "sub": subject,
            "roles": list(roles),
            "iat": now,
            "exp": now + int(seconds),
        }
        return jwt.encode(claims, self._secret, "HS256")

    async def principal(self, authorization: str | None) -> Principal:
        if not authorization or not authorization.startswith("Bearer "):
            raise unauthenticated("Send a token: Authorization: Bearer …. POST /v1/sessions gives one.")
        token = authorization[7:]
        if known := self._verified.get(token):
            principal, expires = known
            if time.time() < expires:
                return principal
        claims = await self._verify(token)
        principal = Principal(claims["sub"], frozenset(claims.get("roles", ())) & set(ROLES))
        if len(self._verified) >= CACHED_TOKENS:
            self._verified.clear()
        self._verified[token] = (principal, float(claims["exp"]))
        return principal

    async def _verify(self, token: str) -> dict[str, Any]:
        try:
            issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
            key: Any = self._secret
            algorithms = ["HS256"]
            if self._oidc and issuer == self._oidc:
                key, algorithms = await self._issuer_key(token), ["RS256", "ES256", "EdDSA"]
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=self._audience,
                issuer=self._oidc if self._oidc and issuer == self._oidc else ISSUER,
                options={"require": ["exp", "sub", "aud", "iss"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise Problem(
                401, "token-expired", "The token has expired; get a new one.", {"WWW-Authenticate": "Bearer"}
            ) from error
        except jwt.PyJWTError as error:
            raise Problem(
                401, "token-invalid", f"The token is not valid: {error}.", {"WWW-Authenticate": "Bearer"}
            ) from error
        return claims

    async def _issuer_key(self, token: str) -> Any:
        key_id = jwt.get_unverified_header(token).get("kid")
        known = self._keys is not None and any(key.key_id == key_id for key in self._keys.keys)
        if not known and time.monotonic() - self._asked[0] > ASKS_WITHIN_SECONDS:
            self._asked.append(time.monotonic())
            self._keys = await self._fetch_keys()
        for key in self._keys.keys if self._keys else ():
            if key.key_id == key_id:
                return key.key
        raise jwt.InvalidTokenError("its issuer does not know the key")

    async def _fetch_keys(self) -> jwt.PyJWKSet:
        try:
            async with httpx.AsyncClient(timeout=5) as http:
                discovery = await http.get(self._oidc.rstrip("/") + "/.well-known/openid-configuration")
                keys = await http.get(discovery.raise_for_status().json()["jwks_uri"])
                return jwt.PyJWKSet.from_dict(keys.raise_for_status().json())
        except (httpx.HTTPError, KeyError, ValueError) as error:
            raise OperatorError(
                f"The token issuer {self._oidc} does not give its keys: {error!r}", "Check TILL_AUTH_ISSUER."
            ) from error
