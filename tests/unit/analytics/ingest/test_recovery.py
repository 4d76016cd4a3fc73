"""The ingest compares Kafka with what the lake has read, and names messages that it would skip."""

import pytest

from analytics.ingest.recovery import refuse_gaps
from analytics.log.commits import IngestCommit
from analytics.runtime.kafka_topics import Topics
from shared.errors import OperatorError

READ = IngestCommit("g", 4, {"cart.events": {"0": 10, "1": 20}}, {"cart.events": "id-1"})


def topics(beginning: int = 0, end: int = 30, its_id: str = "id-1") -> Topics:
    return Topics(
        {"cart.events": its_id},
        {"cart.events": {"0": beginning, "1": beginning}},
        {"cart.events": {"0": end, "1": end, "2": end}},
    )


def test_a_topic_that_has_grown_is_continued() -> None:
    refuse_gaps(READ, topics())
    refuse_gaps(READ, topics(beginning=10))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (topics(end=15), "deleted and created again. The lake has read partition 1 up to 20, and it ends at 15"),
        (topics(its_id="id-2"), "deleted and created again"),
        (topics(beginning=11), "deleted before the lake has read them: partition 0, from 10 up to 11"),
    ],
)
def test_messages_that_would_be_skipped_are_named(found: Topics, message: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        refuse_gaps(READ, found)
    assert message in refusal.value.message
    assert "till lake run --accept cart.events" in refusal.value.hint


def test_a_commit_without_topic_ids_is_compared_by_offsets_alone() -> None:
    refuse_gaps(IngestCommit("g", 4, READ.offsets), topics(its_id="id-2"))
