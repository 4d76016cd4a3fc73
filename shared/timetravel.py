"""A stream's state as it was, at a version or at a moment."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.errors import Refused
from shared.handler import Handled
from shared.service import Runtime

MAX_VERSION = 2**31 - 1
DAY = timedelta(days=1)  # the widest time zone, and more


@dataclass(frozen=True, slots=True)
class AsOf:
    version: int | None = None
    at: datetime | None = None


async def as_of(runtime: Runtime, stream_id: str, moment: AsOf) -> Handled[Any, Any]:
    at = _utc(moment.at) if moment.at else None
    last = min(moment.version, MAX_VERSION) if moment.version else None
    found = await runtime.store.history(stream_id, version=last, at=at)
    # The clocks of two servers may disagree. A stream's past ends before its first event that was still to come.
    history = [event for version, event in enumerate(found, 1) if event.version == version]
    if moment.version and len(history) < moment.version and at is None:
        raise Refused("version-unknown", f"It has no version {moment.version}; the latest is {len(history)}.")
    decider = runtime.service.decider
    state = decider.initial
    for recorded in history:
        state = decider.evolve(state, await runtime.memory.decode(recorded.value))
    return Handled(stream_id, state, len(history))


def _utc(at: datetime) -> datetime:
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    # The first and the last day of the calendar have no UTC in every time zone.
    return min(max(aware, datetime.min.replace(tzinfo=UTC) + DAY), datetime.max.replace(tzinfo=UTC) - DAY)
