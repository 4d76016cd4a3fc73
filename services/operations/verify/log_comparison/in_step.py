"""Reads a store and its topic in step by time, so that neither gets far ahead of the other and memory stays flat."""

from collections import deque
from datetime import datetime

from services.operations.verify.log_comparison.comparison import LogComparison, TopicEnd
from services.operations.verify.log_comparison.messages import Offsets
from shared.envelope import EPOCH, millis

CHUNKS_AHEAD = 3
"""The store is read this many chunks ahead of the topic, so that most messages find their event at once."""
UNSENT_KEPT = 10_000


async def read_in_step(
    comparison: LogComparison,
    starts: Offsets,
    stops: Offsets,
    last_position: int,
    topic_end: TopicEnd,
    since: datetime | None,
) -> None:
    """Feeds the comparison with all events up to `last_position`, and all messages from `starts` to `stops`."""
    since_ms = millis(since) if since else -1
    reached = dict(starts)
    topic_ms = {partition: -1 for partition, start in starts.items() if start < stops[partition]}
    stored_ms = deque([-1] * CHUNKS_AHEAD, CHUNKS_AHEAD)
    chunks, has_more = comparison.reader.read_store(last_position, since or EPOCH), True
    while has_more or topic_ms:
        behind = [partition for partition, ms in topic_ms.items() if ms < stored_ms[0] or not has_more]
        if has_more and not behind:
            stored = await anext(chunks, None)
            if stored is None:
                has_more, comparison.position = False, last_position
            else:
                comparison.take_stored(stored)
                stored_ms.append(stored[-1][2][0])
            # Once the topic is read up to `stops`, no message there can match the rest of the store.
            if not topic_ms and len(comparison.unsent) > UNSENT_KEPT:
                await comparison.judge_unsent(stops, topic_end, patience=0)
            continue
        fetched = await comparison.reader.fetch({partition: reached[partition] for partition in behind})
        for partition, (messages, following) in fetched.items():
            wanted = messages if following <= stops[partition] else [it for it in messages if it[0] < stops[partition]]
            comparison.take_messages(partition, [it for it in wanted if it[2][0] >= since_ms] if since else wanted)
            if wanted:
                topic_ms[partition] = max(topic_ms[partition], wanted[-1][2][0])
            reached[partition] = following
            if following >= stops[partition]:
                del topic_ms[partition]
        await comparison.judge_mismatches()
