"""Checks everything that follows from folding the events of one service: its views (I5) and the pieces in stock (I9).

The events are fetched and decoded once for all of these checks.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.operations.reading.fold import FoldedBatch, fold_streams, read_all_streams, read_streams
from services.operations.reading.row_builders import RowBuilder
from services.operations.reading.stores import Store
from services.operations.verify.checks.stock import stock_checks
from services.operations.verify.checks.views import view_checks
from services.operations.verify.findings import CheckContext, Findings


class FoldCheck(Protocol):
    """A check that is fed with the rows its builder makes of the events in its store."""

    store: Store
    builder: RowBuilder

    async def take(self, batch: FoldedBatch) -> None: ...

    async def finish(self) -> Findings: ...


async def check(context: CheckContext, service: str) -> list[Findings]:
    decoded_alike: dict[int, list[FoldCheck]] = defaultdict(list)
    checks: list[FoldCheck] = [*view_checks(context), *stock_checks(context)]
    for it in checks:
        if it.store.service == service:
            decoded_alike[id(it.store.decoder)].append(it)
    return [findings for group in decoded_alike.values() for findings in await _run_together(context, group)]


async def _run_together(context: CheckContext, checks: Sequence[FoldCheck]) -> list[Findings]:
    """Runs checks that read the same store and decode its events alike."""
    store = checks[0].store
    streams = await _changed_since(store, context.since) if context.since else None
    chunks = read_all_streams(store.pool) if streams is None else read_streams(store.pool, streams)
    async for batches in fold_streams(store, [it.builder for it in checks], chunks):
        for it, batch in zip(checks, batches, strict=True):
            await it.take(batch)
        context.report(batches[0].events)
    return [await it.finish() for it in checks]


async def _changed_since(store: Store, since: datetime) -> list[str]:
    rows = await store.pool.fetch("SELECT DISTINCT stream_id FROM events WHERE time >= $1", since, timeout=600)
    return [row[0] for row in rows]
