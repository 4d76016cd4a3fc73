"""The current state of streams: loaded events folded on top of the cached state, a snapshot, or nothing."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Generic

from shared.decider import Command, Decider, Event, State, Versioned
from shared.schemas.codec import Codec, UnknownSchema
from shared.store.database import Connection, raising_unavailable
from shared.store.event_store import EventStore
from shared.store.snapshots import Snapshots

CACHED_STREAMS = 20_000
EVENTS_PER_QUERY = 5_000


class States(Generic[State, Command, Event]):
    """Loads and folds streams, and caches the states of those used last.

    Events are never changed, so a cached state is never wrong. It may be out of date: other processes append too.
    """

    def __init__(
        self,
        decider: Decider[State, Command, Event],
        store: EventStore,
        codec: Codec,
        snapshots: Snapshots,
        decode_unknown: Callable[[bytes], Awaitable[Any]] | None = None,
    ) -> None:
        """`decode_unknown` reads values whose schema the codec does not have: those of a newer release that runs at
        the same time, or of an older one after the database was refilled.
        """
        self._decider = decider
        self._store = store
        self._codec = codec
        self._snapshots = snapshots
        self._decode_unknown = decode_unknown
        self._cache: OrderedDict[str, Versioned[State]] = OrderedDict()

    def cached(self, stream_id: str) -> Versioned[State] | None:
        return self._cache.get(stream_id)

    async def load(self, stream_id: str) -> Versioned[State]:
        return (await self.load_all([stream_id]))[stream_id]

    async def load_all(
        self, stream_ids: Collection[str], source: "Connection | None" = None
    ) -> dict[str, Versioned[State]]:
        """Reads what is stored by now, including the events of other processes, and folds it."""
        with raising_unavailable():
            states = await self._starting_points(stream_ids, source)
            incomplete = list(states)
            while incomplete:
                reached = {stream_id: states[stream_id].version for stream_id in incomplete}
                loaded = await self._store.load_all(reached, source, EVENTS_PER_QUERY)
                for stream_id, values in loaded.items():
                    states[stream_id] = await self._fold(states[stream_id], values)
                incomplete = [it for it, values in loaded.items() if len(values) == EVENTS_PER_QUERY]
        for found in states.values():
            self._remember(found)
        return states

    async def keep(self, before: Versioned[State], after: Versioned[State]) -> None:
        """Caches the state that appended events led to, and saves a snapshot when one is due."""
        self._remember(Versioned(after.stream_id, after.state, after.version))
        await self._save_snapshot_when_due(before, after)

    async def _starting_points(
        self, stream_ids: Collection[str], source: "Connection | None"
    ) -> dict[str, Versioned[State]]:
        uncached = [stream_id for stream_id in stream_ids if stream_id not in self._cache]
        snapshots = await self._snapshots.load(uncached, source) if uncached else {}
        nothing = self._decider.initial, 0
        return {it: self._cache.get(it) or Versioned(it, *snapshots.get(it, nothing)) for it in stream_ids}

    async def _fold(self, before: Versioned[State], values: Sequence[bytes]) -> Versioned[State]:
        decode, evolve, state = self._codec.decode, self._decider.evolve, before.state
        for value in values:
            try:
                event = decode(value)
            except UnknownSchema:
                if self._decode_unknown is None:
                    raise
                event = await self._decode_unknown(value)
            state = evolve(state, event)
        after = Versioned(before.stream_id, state, before.version + len(values))
        await self._save_snapshot_when_due(before, after)
        return after

    async def _save_snapshot_when_due(self, before: Versioned[State], after: Versioned[State]) -> None:
        if self._snapshots.due(before.version, after.version):
            await self._snapshots.save(after.stream_id, after.state, after.version)

    def _remember(self, found: Versioned[State]) -> None:
        if not found.version:
            return
        cached = self._cache.get(found.stream_id)
        if cached is None or cached.version < found.version:
            self._cache[found.stream_id] = found
        self._cache.move_to_end(found.stream_id)
        if len(self._cache) > CACHED_STREAMS:
            self._cache.popitem(last=False)
