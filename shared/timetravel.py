"""A stream's state as it was, at a version or at a moment."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.errors import Refused
from shared.handler import Handled
from shared.service import Runtime


@dataclass(frozen=True, slots=True)
class AsOf:
    version: int | None = None
    at: datetime | None = None


async def as_of(runtime: Runtime, stream_id: str, moment: AsOf) -> Handled[Any, Any]:
    at = moment.at if moment.at is None or moment.at.tzinfo else moment.at.replace(tzinfo=UTC)
    history = await runtime.store.history(stream_id, version=moment.version, at=at)
    if moment.version and len(history) < moment.version and at is None:
        raise Refused("version-unknown", f"It has no version {moment.version}; the latest is {len(history)}.")
    decider = runtime.service.decider
    state = decider.initial
    for recorded in history:
        state = decider.evolve(state, await runtime.memory.decode(recorded.value))
    return Handled(stream_id, state, len(history))
