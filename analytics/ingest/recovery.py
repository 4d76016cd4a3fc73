"""Decides where the ingest continues, also after its checkpoint was lost or a topic was deleted and created again.

A checkpoint has a generation. Delta accepts a batch of a generation once, so the batches of a new checkpoint under an
old name would be silently ignored: it gets a new generation, and starts where bronze's last commit ended.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from analytics.catalog import FEED
from analytics.ingest.bronze import is_between
from analytics.lake import Lake, LakeFiles
from analytics.log.commits import IngestCommit
from analytics.log.offsets import Offsets
from analytics.runtime.kafka_topics import Topics, describe_topics
from shared.errors import OperatorError

log = logging.getLogger(__name__)

QUERY = IngestCommit.QUERY
EARLIEST = -2
"""The number by which Spark knows the beginning of a partition."""
FRESH_START = -1
"""Batch number of a commit that has no rows and only says where to start."""


@dataclass(frozen=True)
class HalfDone:
    """A batch that bronze has, and silver perhaps not."""

    rows: DataFrame
    commit: IngestCommit


@dataclass(frozen=True)
class Start:
    generation: str
    offsets: Offsets | None
    """The offset at which each partition starts. With None the checkpoint decides, or else the beginning."""
    topics: Mapping[str, str]
    half_done: HalfDone | None = None


def find_start(lake: Lake) -> Start:
    """Returns where the ingest continues. Raises an OperatorError where that would skip messages."""
    topics = describe_topics(lake.spark, lake.settings, FEED)
    last, before = _last_two(lake)
    if last is None:
        unfinished = lake.storage.names(lake.checkpoints(QUERY))
        return Start(unfinished[0] if unfinished else str(uuid4()), None, topics.ids)
    refuse_gaps(last, topics)
    if planned_end(lake, last.generation, last.batch) == last.offsets:
        return Start(last.generation, None, topics.ids)
    if last.batch != FRESH_START:
        log.warning("the checkpoint of the ingest is lost; it continues from what bronze has")
    half_done = HalfDone(_rows_between(lake, before, last), last) if last.batch != FRESH_START else None
    return Start(str(uuid4()), _all_partitions(last.offsets, topics), topics.ids, half_done)


def planned_end(lake: Lake, generation: str, batch: int) -> Offsets | None:
    """Reads where a batch ends from Spark's checkpoint: Spark writes it down before the batch begins."""
    offsets = f"{lake.checkpoint(QUERY, generation)}/offsets"
    if str(batch) not in lake.storage.names(offsets):
        return None
    last_line: Any = json.loads(lake.storage.text(f"{offsets}/{batch}").splitlines()[-1])
    return dict(last_line)


def accept_topics(lake: Lake, names: list[str]) -> None:
    """Continues with these topics as they are now, from their beginnings. What the lake has read stays in it."""
    if unknown := set(names) - set(FEED):
        raise OperatorError(f"The lake does not read {', '.join(sorted(unknown))}.", f"It reads {', '.join(FEED)}.")
    topics = describe_topics(lake.spark, lake.settings, FEED)
    last, _ = _last_two(lake)
    offsets = {**(last.offsets if last else {}), **{name: topics.beginnings[name] for name in names}}
    start = IngestCommit(str(uuid4()), FRESH_START, offsets, topics.ids)
    nothing = lake.read("bronze.events").limit(0)
    # Delta records no empty commit, unless it has the number of a transaction.
    named = {"txnAppId": f"{start.generation}:accepted", "txnVersion": "0", "userMetadata": start.metadata()}
    nothing.write.format("delta").mode("append").options(**named).save(lake.path("bronze.events"))


def refuse_gaps(last: IngestCommit, topics: Topics) -> None:
    """Raises an OperatorError if messages that the lake has not read are gone from Kafka."""
    for name, partitions in last.offsets.items():
        recreated = last.topics.get(name, topics.ids[name]) != topics.ids[name]
        for partition, offset in partitions.items():
            if recreated or topics.ends[name].get(partition, 0) < offset:
                raise OperatorError(
                    f"The topic {name} is not the one that the lake has read: it was deleted and created again. "
                    f"The lake has read partition {partition} up to {offset}, and it ends at "
                    f"{topics.ends[name].get(partition, 0)}.",
                    f"If it was filled again from the store, take it from its beginning: "
                    f"till lake run --accept {name}. Events that silver has are known by their ids.",
                )
            if topics.beginnings[name].get(partition, 0) > offset:
                raise OperatorError(
                    f"Messages of {name} were deleted before the lake has read them: partition {partition}, from "
                    f"{offset} up to {topics.beginnings[name][partition]}.",
                    f"Publish them again from the store, or continue without them: till lake run --accept {name}.",
                )


def _last_two(lake: LakeFiles) -> tuple[IngestCommit | None, IngestCommit | None]:
    commits = [span.commit for span in islice(lake.log("bronze.events").spans(IngestCommit), 2)]
    last, before, *_ = [*commits, None, None]
    return last, before


def _rows_between(lake: Lake, before: IngestCommit | None, last: IngestCommit) -> DataFrame:
    """Reads bronze's rows of the last batch."""
    return lake.read("bronze.events").where(is_between(before.offsets if before else {}, last.offsets))


def _all_partitions(offsets: Offsets, topics: Topics) -> Offsets:
    """Completes the offsets: Spark requires every partition, also those that were added since."""
    return {
        name: {partition: offsets.get(name, {}).get(partition, EARLIEST) for partition in ends}
        for name, ends in topics.ends.items()
    }
