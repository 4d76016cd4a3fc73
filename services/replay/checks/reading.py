"""Several checks that fold the same events: these are fetched and decoded once for all of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.replay.checks.findings import Findings, World
from services.replay.folding import Folded, Rows, folded, in_streams, of_streams
from services.replay.targets import Store


class Fold(Protocol):
    store: Store
    rows: Rows

    async def take(self, batch: Folded) -> None:
        """What some more streams come to."""
        ...

    async def finish(self) -> Findings: ...


async def read(world: World, folds: Sequence[Fold]) -> list[Findings]:
    """They are of one store, and decoded alike."""
    store = folds[0].store
    streams = await _changed_since(store, world.since) if world.since else None
    chunks = in_streams(store.pool) if streams is None else of_streams(store.pool, streams)
    async for batches in folded(store, [it.rows for it in folds], chunks):
        for it, batch in zip(folds, batches, strict=True):
            await it.take(batch)
        world.tell(batches[0].events)
    return [await it.finish() for it in folds]


async def _changed_since(store: Store, since: datetime) -> list[str]:
    rows = await store.pool.fetch("SELECT DISTINCT stream_id FROM events WHERE time >= $1", since, timeout=600)
    return [row[0] for row in rows]
