"""Invariant I3: the store of a service and its topic hold the same events, byte for byte, each stream in order.

Keys, headers, timestamps and partitions are compared too. Nothing is decoded.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from services.operations.reading.stores import Store
from services.operations.verify.findings import CheckContext, Findings, Violation
from services.operations.verify.log_comparison.comparison import LogComparison
from services.operations.verify.log_comparison.fast_reader import open_fast_reader
from services.operations.verify.log_comparison.in_step import read_in_step
from services.operations.verify.log_comparison.messages import LogReader, Offsets
from shared.messaging.topic_reader import open_reader
from shared.settings import Settings

NAME, ABOUT = "store = topic", "every event, byte for byte; versions 1..n in the order of offsets"
HOLES_SECONDS = 600.0
HOLES = """
SELECT stream_id, count(*), max(version) FROM events GROUP BY stream_id
HAVING max(version) <> count(*) OR min(version) <> 1 ORDER BY stream_id LIMIT 100
"""


class OpenLogReader(Protocol):
    def __call__(self, settings: Settings, store: Store, source: str) -> AbstractAsyncContextManager[LogReader]: ...


async def check(
    context: CheckContext, service: str, open_log_reader: OpenLogReader = open_fast_reader
) -> list[Findings]:
    store, source = context.stores[service], context.service_named(service).source
    topic = store.decider.topic
    findings = Findings(f"{NAME}: {topic}", ABOUT)
    async with (
        open_reader(context.settings, topic) as topic_reader,
        open_log_reader(context.settings, store, source) as reader,
    ):

        async def topic_end() -> Offsets:
            return {at.partition: offset for at, offset in (await topic_reader.ends()).items()}

        # The topic's end comes first: all that is before it is stored by the time we ask how far the store goes.
        stops = await topic_end()
        begun = await (topic_reader.offsets_at(context.since) if context.since else topic_reader.beginnings())
        starts = {at.partition: offset for at, offset in begun.items()}
        last = await store.pool.fetchval("SELECT coalesce(max(position), 0) FROM events")
        comparison = LogComparison(context, store, reader, len(stops), findings)
        await read_in_step(comparison, starts, stops, last, topic_end, context.since)
        await comparison.judge_unsent(stops, topic_end, context.patience)
    for stream, count, highest in await store.pool.fetch(HOLES, timeout=HOLES_SECONDS):
        what = f"Versions are missing in the store: it has {count} events, the last is version {highest}."
        findings.add(Violation(what, stream, f"version {highest}", f"till history {stream}"))
    if comparison.duplicates:
        findings.notes.append(f"{comparison.duplicates} messages of {topic} were delivered twice, with the same bytes.")
    if comparison.in_outbox:
        findings.notes.append(f"{comparison.in_outbox} events of {topic} are still in the outbox.")
    return [findings]
