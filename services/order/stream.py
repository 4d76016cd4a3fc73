"""Server-Sent Events: the status changes of one order, as they happen."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi.responses import StreamingResponse

from services.order.bodies import ORDER, STATE_NAMES, order_body
from services.order.decider import Cancelled, Confirmed, Order
from shared.decider import Versioned
from shared.http.problems import Problem
from shared.service import Runtime

LAST_EVENT_ID = re.compile(r"[0-9]{1,9}")
POLL_SECONDS = 0.05
KEEP_ALIVE_SECONDS = 15.0

CHANGE = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string", "description": "The version that led to it, for Last-Event-ID."},
        "event": {"const": "status"},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "The order, as in lists."},
    },
}
EXAMPLE = {"id": "4", "event": "status", "data": orjson.dumps(ORDER).decode()}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"itemSchema": CHANGE | {"examples": [EXAMPLE]}}}}
}
RESUME = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Resume after this event, as a browser does whose connection broke.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,9}$", "examples": ["1"]},
}


class EventStream(StreamingResponse):
    media_type = "text/event-stream"


def parse_last_event_id(header: str | None) -> int:
    if header is None:
        return 0
    if not LAST_EVENT_ID.fullmatch(header):
        raise Problem(400, "last-event-id-invalid", "Last-Event-ID is the id of the last event received.")
    return int(header)


async def status_changes(runtime: Runtime, stream_id: str, after: int) -> AsyncIterator[bytes]:
    """Yields each status after this version, with the version that led to it as its id. Ends after a final status."""
    decider = runtime.service.decider
    state: Order = decider.initial
    version, quiet_since = 0, time.monotonic()
    while True:
        for value in await runtime.store.load(stream_id, version):
            before = STATE_NAMES.get(type(state))
            state = decider.evolve(state, await runtime.decoder.decode(value))
            version += 1
            if STATE_NAMES[type(state)] != before and version > after:
                document = orjson.dumps(order_body(Versioned(stream_id, state, version)))
                yield b"id: %d\nevent: status\ndata: %s\n\n" % (version, document)
                quiet_since = time.monotonic()
        if isinstance(state, Confirmed | Cancelled):
            return
        if time.monotonic() - quiet_since > KEEP_ALIVE_SECONDS:
            yield b": still here\n\n"
            quiet_since = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)
