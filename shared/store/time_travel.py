"""Time travel: a stream's state as it was at a version or at a moment."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shared.decider import Decider, Versioned
from shared.errors import Refused
from shared.store.event_store import MAX_VERSION, EventStore
from shared.store.snapshots import Snapshots

if TYPE_CHECKING:  # looking back needs no running service
    from shared.service import Runtime

DAY = timedelta(days=1)  # more than the widest time zone


@dataclass(frozen=True, slots=True)
class AsOf:
    """A point in the past of a stream: a version, a moment, or the earlier of both."""

    version: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """Folds a stream up to a version or a moment: the decider, the store, and milestones to start from."""

    decider: Decider[Any, Any, Any]
    store: EventStore
    snapshots: Snapshots
    decode: Callable[[bytes], Awaitable[Any]]

    async def state(self, stream_id: str, moment: AsOf) -> Versioned[Any]:
        """Starts at the nearest milestone. A version past the end gives the latest state."""
        last = MAX_VERSION if moment.version is None else min(moment.version, MAX_VERSION)
        at = _utc(moment.at) if moment.at else None
        state, version = await self.snapshots.nearest(stream_id, last, at) or (self.decider.initial, 0)
        evolve, decode = self.decider.evolve, self.decode
        while events := await self.store.load_timed(stream_id, version, last):
            for time, value in events:
                # The clocks of two servers may disagree, so times need not rise with versions. The past ends before
                # the first event that is later than the moment.
                if at and time > at:
                    return Versioned(stream_id, state, version)
                state = evolve(state, await decode(value))
                version += 1
        return Versioned(stream_id, state, version)


async def as_of(runtime: "Runtime", stream_id: str, moment: AsOf) -> Versioned[Any]:
    """Returns the state at that point. Refuses a version that the stream does not have yet."""
    found = await runtime.past.state(stream_id, moment)
    if moment.version and found.version < moment.version and moment.at is None:
        raise Refused("version-unknown", f"It has no version {moment.version}; the latest is {found.version}.")
    return found


def _utc(at: datetime) -> datetime:
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    # The first and the last day of the calendar cannot be converted to UTC from every time zone.
    return min(max(aware, datetime.min.replace(tzinfo=UTC) + DAY), datetime.max.replace(tzinfo=UTC) - DAY)
