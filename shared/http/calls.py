"""One request as a service sees it: who, with which preconditions, and how its answer is given (once)."""

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Request, Response
from uuid_utils import uuid7

from shared.envelope import Context, pack_headers, unpack_headers
from shared.errors import Refused
from shared.handler import CommandHandler, Handled
from shared.handler import Request as KeyedRequest
from shared.http.auth import Principal, Role, Tokens
from shared.http.problems import Problem, of_refusal
from shared.logs import correlation
from shared.store import StoredAnswer

POSITION = re.compile(r"([a-z]+:[\x21-\x7e]{1,200})@(\d{1,9})")
ETAG = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})')
"""Quoted, as it is answered; bare, as one types it into a shell."""
KEY = re.compile(r"[\x21-\x7e]{1,200}")
TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
CORRELATION = re.compile(r"[\x21-\x7e]{1,64}")
POLL_SECONDS = 0.005
GRACE_SECONDS, GRACE_POLL_SECONDS = 2.0, 0.05
READ = {
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

Render = Callable[[Handled[Any, Any]], Any]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a stream: `cart:0190…@7`. Opaque to clients; a view has reached it when it shows that version."""

    stream_id: str
    version: int

    def __str__(self) -> str:
        return f"{self.stream_id}@{self.version}"

    @property
    def category(self) -> str:
        return self.stream_id.partition(":")[0]

    @property
    def key(self) -> str:
        return self.stream_id.partition(":")[2]


Views = Mapping[str, Callable[[Position], Awaitable[bool]]]
"""What a read can wait for, by stream or by category of streams: whether it is shown yet."""


@dataclass(slots=True)
class Read:
    """A request that changes nothing. Who asks is for the route to say."""

    request: Request
    min_position: Position | None

    async def wait_for(self, views: Views) -> None:
        """Hold the read until its view shows what Min-Position names."""
        if not (position := self.min_position):
            return
        reached = views.get(position.stream_id) or views.get(position.category)
        if reached is None:
            raise _elsewhere(position)
        deadline = time.monotonic() + self._patience()
        while not await reached(position):
            if time.monotonic() > deadline:
                raise self._too_early()
            await asyncio.sleep(POLL_SECONDS)

    async def find(self, look: Callable[[], Awaitable[Found | None]], *categories: str) -> Found | None:
        """What another service's event brings about exists a moment after it was promised: whoever asks in between
        waits rather than hears 404. What is somebody else's is not found either, and takes as long.
        """
        if self.min_position and self.min_position.category not in categories:
            raise _elsewhere(self.min_position)
        patience = self._patience() if self.min_position else min(self._patience(), GRACE_SECONDS)
        deadline = time.monotonic() + patience
        while (found := await look()) is None:
            if time.monotonic() > deadline:
                if self.min_position:
                    raise self._too_early()
                return None
            await asyncio.sleep(GRACE_POLL_SECONDS)
        return found

    def _patience(self) -> float:
        return float(self.request.app.state.settings.min_position_timeout)

    def _too_early(self) -> Problem:
        return Problem(504, "position-not-reached", f"The view has not reached {self.min_position} in time.")


@dataclass(slots=True)
class Call(Read):
    principal: Principal
    context: Context
    key: str | None
    expected: int | None

    async def perform(
        self,
        handler: CommandHandler[Any, Any, Any],
        stream_id: str,
        command: Any,
        render: Render,
        status: int = 200,
        location: str | None = None,
    ) -> Response:
        """Run the command and answer with `render`. With an Idempotency-Key, the answer is stored with the events."""

        def answer(outcome: Handled[Any, Any] | Refused) -> tuple[int, bytes, bytes]:
            if isinstance(outcome, Refused):
                problem = of_refusal(outcome, self.request.app.state.statuses)
                return (
                    problem.status,
                    pack_headers([("content-type", b"application/problem+json")]),
                    problem.body(),
                )
            return status, pack_headers(_headers(outcome, location)), orjson.dumps(render(outcome))

        keyed = KeyedRequest(self.key, await self._digest(), answer) if self.key else None
        outcome = await handler.handle(stream_id, command, self.context, expected=self.expected, request=keyed)
        if isinstance(outcome, StoredAnswer):
            headers = [*unpack_headers(outcome.headers), ("idempotency-replayed", b"true")]
            return Answer(outcome.status, headers, outcome.body)
        return Answer(status, _headers(outcome, location), orjson.dumps(render(outcome)))

    async def _digest(self) -> bytes:
        request = self.request
        target = f"{request.method} {request.url.path}\n".encode()
        # With a key: a plain hash of name and address could be guessed at by whoever reads the table.
        return hmac.digest(request.app.state.digest_key, target + await request.body(), "sha256")


def _elsewhere(position: Position) -> Problem:
    return Problem(400, "min-position-elsewhere", f"Nothing here ever shows {position.stream_id}.")


class Answer(Response):
    """With the headers it is given and no others: Starlette's own looks for what might be missing."""

    def __init__(self, status: int, headers: list[tuple[str, bytes]], body: bytes) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [(name.encode(), value) for name, value in headers]
        self.raw_headers.append((b"content-length", b"%d" % len(body)))


def _headers(handled: Handled[Any, Any], location: str | None) -> list[tuple[str, bytes]]:
    headers = [
        ("content-type", b"application/json"),
        ("etag", b'"%d"' % handled.version),
        ("event-position", f"{handled.stream_id}@{handled.version}".encode()),
    ]
    return [*headers, ("location", location.encode())] if location else headers


def answer_read(handled: Handled[Any, Any], body: Any) -> Response:
    return Answer(200, _headers(handled, None), orjson.dumps(body))


def answer_list(body: Any) -> Response:
    return Answer(200, [("content-type", b"application/json")], orjson.dumps(body))


async def _call(request: Request) -> Call:
    """One dependency for all of it, reading the headers itself: five of FastAPI's own cost more than the append."""
    headers = _headers_of(request)
    tokens: Tokens = request.app.state.tokens
    principal = await tokens.principal(headers.get("authorization"))
    request.app.state.rate_limit.take(principal.subject)
    request_id = uuid7()
    asked = headers.get("x-correlation-id", "")
    correlation_id = asked if CORRELATION.fullmatch(asked) else str(request_id)
    traceparent = headers.get("traceparent", "")
    if not TRACEPARENT.fullmatch(traceparent):
        trace_id = request_id.hex  # its second half is random: a span's id
        traceparent = f"00-{trace_id}-{trace_id[16:]}-01"
    correlation.set(correlation_id)
    return Call(
        request,
        _position(headers.get("min-position")),
        principal,
        Context(principal.subject, correlation_id, str(request_id), traceparent),
        _key(headers.get("idempotency-key")),
        _expected(headers.get("if-match"), headers.get("if-none-match")),
    )


_call.roles = ()  # type: ignore[attr-defined] # told to OpenAPI: any token will do


async def _read(request: Request) -> Read:
    return Read(request, _position(_headers_of(request).get("min-position")))


def _headers_of(request: Request) -> dict[str, str]:
    """A plain dict of those we read: Starlette's looks through all headers for each that is asked for."""
    return {READ[name]: value.decode("latin-1") for name, value in request.scope["headers"] if name in READ}


def _key(header: str | None) -> str | None:
    if header is not None and not KEY.fullmatch(header):
        raise Problem(
            400, "idempotency-key-invalid", "An Idempotency-Key has 1 to 200 printable ASCII characters, and no space."
        )
    return header


def _expected(if_match: str | None, if_none_match: str | None) -> int | None:
    if if_none_match is not None:
        if if_none_match != "*":
            raise Problem(400, "if-none-match-invalid", "If-None-Match takes *: only if there is none yet.")
        return 0
    if if_match is None or if_match == "*":
        return None
    if not (etag := ETAG.fullmatch(if_match)):
        raise Problem(400, "if-match-invalid", 'If-Match takes one ETag as it was answered, such as "7".')
    return int(etag[1] or etag[2])


def _position(header: str | None) -> Position | None:
    if header is None:
        return None
    if not (position := POSITION.fullmatch(header)):
        raise Problem(400, "min-position-invalid", "Min-Position takes an Event-Position as it was answered.")
    return Position(position[1], int(position[2]))


def requires(*roles: Role) -> Any:
    async def check(request: Request) -> Call:
        call = await _call(request)
        call.principal.require(*roles)
        return call

    check.roles = roles  # type: ignore[attr-defined] # told to OpenAPI
    return check


Reading = Annotated[Read, Depends(_read)]
Authenticated = Annotated[Call, Depends(_call)]
Support = Annotated[Call, Depends(requires("support"))]
Operator = Annotated[Call, Depends(requires("operator"))]
