"""Authenticates callers by bearer tokens (JWT), minted by the application itself or by an OIDC issuer.

A role is a plain string here. The application declares its roles, and each route names those that it requires.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import jwt

from shared.errors import OperatorError
from shared.http.problems import Problem, unauthenticated
from shared.settings import Settings

ISSUER = "till-roll"
CACHED_TOKENS = 50_000
KEY_FETCHES, KEY_FETCH_SECONDS = 5, 30.0
"""Most fetches of an issuer's keys within that time, however many unknown key ids callers send."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller that a token was issued to."""

    subject: str
    roles: frozenset[str]

    def require(self, *roles: str) -> None:
        if self.roles.isdisjoint(roles):
            raise Problem(403, "forbidden", f"This needs the role {' or '.join(roles)}.")


class Tokens:
    """Mints and verifies tokens."""

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
        self._fetched_at = deque([-KEY_FETCH_SECONDS] * KEY_FETCHES, maxlen=KEY_FETCHES)
        # A signature is verified once; after that the token costs a look-up and a check of its expiry.
        self._verified: dict[str, tuple[Principal, float]] = {}

    def mint(self, subject: str, roles: Sequence[str], seconds: float) -> str:
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
        """Returns the caller of a request from its Authorization header. A missing or invalid token is a problem."""
        if not authorization or not authorization.startswith("Bearer "):
            raise unauthenticated("Send a token: Authorization: Bearer …. POST /v1/sessions gives one.")
        token = authorization[7:]
        if verified := self._verified.get(token):
            principal, expires = verified
            if time.time() < expires:
                return principal
        claims = await self._verify(token)
        principal = Principal(claims["sub"], _roles(claims.get("roles")))
        if len(self._verified) >= CACHED_TOKENS:
            self._verified.clear()
        self._verified[token] = (principal, float(claims["exp"]))
        return principal

    async def _verify(self, token: str) -> dict[str, Any]:
        try:
            named = jwt.decode(token, options={"verify_signature": False}).get("iss")
            if self._oidc and named == self._oidc:
                issuer, key, algorithms = self._oidc, await self._issuer_key(token), ["RS256", "ES256", "EdDSA"]
            else:
                issuer, key, algorithms = ISSUER, self._secret, ["HS256"]
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=self._audience,
                issuer=issuer,
                options={"require": ["exp", "sub", "aud", "iss"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise unauthenticated("The token has expired; get a new one.", "token-expired") from error
        except jwt.PyJWTError as error:
            raise unauthenticated(f"The token is not valid: {error}.", "token-invalid") from error
        return claims

    async def _issuer_key(self, token: str) -> Any:
        key_id = jwt.get_unverified_header(token).get("kid")
        is_known = self._keys is not None and any(key.key_id == key_id for key in self._keys.keys)
        if not is_known and time.monotonic() - self._fetched_at[0] > KEY_FETCH_SECONDS:
            self._fetched_at.append(time.monotonic())
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


def _roles(claim: object) -> frozenset[str]:
    """Returns the roles of a token. A claim that is no list of names grants nothing."""
    return frozenset(role for role in claim if isinstance(role, str)) if isinstance(claim, list) else frozenset()
