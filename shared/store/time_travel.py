"""A stream's state as it was, at a version or at a moment."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.decider import Decider
from shared.errors import Refused
from shared.handler import Handled
from shared.snapshots import Snapshots
from shared.store import EventStore

if TYPE_CHECKING:  # who looks back need not start a service for it
    from shared.service import Runtime

MAX_VERSION = 2**31 - 1
DAY = timedelta(days=1)  # the widest time zone, and more


@dataclass(frozen=True, slots=True)
class AsOf:
    version: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """All that it takes to look back: how to fold, what to fold, and where others have come by."""

    decider: Decider[Any, Any, Any]
    store: EventStore
    snapshots: Snapshots
    decode: Callable[[bytes], Awaitable[Any]]

    async def state(self, stream_id: str, moment: AsOf) -> Handled[Any, Any]:
        """From the nearest milestone on. A version past the end gives the latest."""
        last = MAX_VERSION if moment.version is None else min(moment.version, MAX_VERSION)
        at = _utc(moment.at) if moment.at else None
        state, version = await self.snapshots.nearest(stream_id, last, at) or (self.decider.initial, 0)
        evolve, decode = self.decider.evolve, self.decode
        while events := await self.store.load_timed(stream_id, version, last):
            for time, value in events:
                # The clocks of two servers may disagree. A stream's past ends before its first event that was still
                # to come.
                if at and time > at:
                    return Handled(stream_id, state, version)
                state = evolve(state, await decode(value))
                version += 1
        return Handled(stream_id, state, version)


async def as_of(runtime: "Runtime", stream_id: str, moment: AsOf) -> Handled[Any, Any]:
    handled = await runtime.past.state(stream_id, moment)
    if moment.version and handled.version < moment.version and moment.at is None:
        raise Refused("version-unknown", f"It has no version {moment.version}; the latest is {handled.version}.")
    return handled


def _utc(at: datetime) -> datetime:
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    # The first and the last day of the calendar have no UTC in every time zone.
    return min(max(aware, datetime.min.replace(tzinfo=UTC) + DAY), datetime.max.replace(tzinfo=UTC) - DAY)
