"""Dependencies of routes. `Authenticated` gives a route a `Call`, which performs commands and needs a token; `Reading`
gives it a `Read`, which anyone may make.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request, Response
from uuid_utils import uuid7

from shared.decider import Decided, Versioned
from shared.envelope import Context, pack_headers, unpack_headers
from shared.errors import Refused
from shared.handler import CommandHandler
from shared.http.auth import Principal, Tokens
from shared.http.positions import Read, parse_position
from shared.http.preconditions import parse_expected_version, parse_idempotency_key
from shared.http.problems import refusal_problem
from shared.http.responses import Answer, version_headers
from shared.logs import correlation
from shared.store.answers import KeyedRequest

TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
CORRELATION = re.compile(r"[\x21-\x7e]{1,64}")
HEADERS_READ = {
    name.encode(): name
    for name in (
        "authorization",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "min-position",
        "traceparent",
        "x-correlation-id",
    )
}

Render = Callable[[Versioned[Any]], Any]
"""Makes the JSON body of an answer."""


@dataclass(slots=True)
class Call(Read):
    """A request of an authenticated caller, with its preconditions."""

    principal: Principal
    context: Context
    key: str | None
    """The Idempotency-Key."""
    expected: int | None
    """The version that the stream must have, from If-Match or If-None-Match."""

    async def perform(
        self,
        handler: CommandHandler[Any, Any, Any],
        stream_id: str,
        command: Any,
        render: Render,
        status: int = 200,
        location: str | None = None,
    ) -> Response:
        """Runs the command and answers with what `render` makes of its outcome.

        With an Idempotency-Key the answer is rendered before the commit, stored with the events, and sent as stored.
        """
        if self.key is None:
            decided = await handler.handle(stream_id, command, self.context, expected=self.expected)
            return Answer(status, version_headers(decided, location), orjson.dumps(render(decided)))

        def render_for_storage(outcome: Decided[Any, Any] | Refused) -> tuple[int, bytes, bytes]:
            if isinstance(outcome, Refused):
                problem = refusal_problem(outcome, self.request.app.state.statuses)
                return problem.status, pack_headers([("content-type", b"application/problem+json")]), problem.body()
            return status, pack_headers(version_headers(outcome, location)), orjson.dumps(render(outcome))

        request = KeyedRequest(self.key, await self._digest(), render_for_storage)
        answered = await handler.handle_once(stream_id, command, self.context, request, expected=self.expected)
        headers = unpack_headers(answered.answer.headers)
        if answered.replayed:
            headers.append(("idempotency-replayed", b"true"))
        return Answer(answered.answer.status, headers, answered.answer.body)

    async def _digest(self) -> bytes:
        request = self.request
        target = f"{request.method} {request.url.path}\n".encode()
        # Keyed: from a plain hash, anyone who can read the table could confirm a guessed name and address.
        return hmac.digest(request.app.state.digest_key, target + await request.body(), "sha256")


class Authenticate:
    """Makes a `Call` of a request, as a FastAPI dependency: verifies the token, its role and the rate limit.

    It reads all headers in one pass, because five dependencies of FastAPI's own cost more than the append.
    """

    def __init__(self, *roles: str) -> None:
        self.roles = roles
        """The caller needs one of these. Empty: any valid token is enough."""

    async def __call__(self, request: Request) -> Call:
        headers = _headers_read(request)
        tokens: Tokens = request.app.state.tokens
        principal = await tokens.principal(headers.get("authorization"))
        request.app.state.rate_limit.take(principal.subject)
        context = _context(principal, headers)
        correlation.set(context.correlation_id)
        call = Call(
            request,
            parse_position(headers.get("min-position")),
            principal,
            context,
            parse_idempotency_key(headers.get("idempotency-key")),
            parse_expected_version(headers.get("if-match"), headers.get("if-none-match")),
        )
        if self.roles:
            principal.require(*self.roles)
        return call


def _context(principal: Principal, headers: dict[str, str]) -> Context:
    """Starts the chain of causes: every event that this request leads to carries its correlation id and trace."""
    request_id = uuid7()
    asked = headers.get("x-correlation-id", "")
    correlation_id = asked if CORRELATION.fullmatch(asked) else str(request_id)
    traceparent = headers.get("traceparent", "")
    if not TRACEPARENT.fullmatch(traceparent):
        trace_id = request_id.hex  # its second half is random and serves as the span's id
        traceparent = f"00-{trace_id}-{trace_id[16:]}-01"
    return Context(principal.subject, correlation_id, str(request_id), traceparent)


async def _read(request: Request) -> Read:
    return Read(request, parse_position(_headers_read(request).get("min-position")))


def _headers_read(request: Request) -> dict[str, str]:
    """Returns the headers that matter here. Starlette's mapping searches all headers for each one looked up."""
    found = request.scope["headers"]
    return {HEADERS_READ[name]: value.decode("latin-1") for name, value in found if name in HEADERS_READ}


Reading = Annotated[Read, Depends(_read)]
Authenticated = Annotated[Call, Depends(Authenticate())]
