"""Where the ingest goes on, and what it does about a checkpoint that is lost or a topic that is not what it was.

A checkpoint has a generation. Delta takes a batch of a generation once, so a new checkpoint under an old name would
have its batches ignored, silently: it gets a new generation, and starts where bronze says the last one got to.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analytics import storage
from analytics.commits import INGEST, Commit, Offsets, commit_of, versions
from analytics.ingest.bronze import FEED
from analytics.paths import checkpoint_of, checkpoints_of
from analytics.tables import path_of, read
from analytics.topics import Topics, look
from shared.errors import OperatorError
from shared.settings import Settings

log = logging.getLogger(__name__)

EARLIEST = -2
ANEW = -1
"""The batch number of a commit that only says where to begin."""


@dataclass(frozen=True)
class HalfDone:
    """A batch that bronze has, and silver perhaps not."""

    rows: DataFrame
    commit: Commit


@dataclass(frozen=True)
class Start:
    generation: str
    offsets: Offsets | None
    """None: where the checkpoint says, or from the beginning where there is none."""
    topics: Mapping[str, str]
    half_done: HalfDone | None = None


def resume(spark: SparkSession, settings: Settings) -> Start:
    """Or an OperatorError, where going on would skip messages."""
    topics = look(spark, settings, FEED)
    last, before = _last_two(settings)
    if last is None:
        unfinished = storage.names(spark, checkpoints_of(settings, INGEST))
        return Start(unfinished[0] if unfinished else str(uuid4()), None, topics.ids)
    refuse_gaps(last, topics)
    if planned(spark, settings, last.generation, last.batch) == last.offsets:
        return Start(last.generation, None, topics.ids)
    if last.batch != ANEW:
        log.warning("the checkpoint of the ingest is lost; it goes on from what bronze has")
    half_done = HalfDone(_between(spark, settings, before, last), last) if last.batch != ANEW else None
    return Start(str(uuid4()), _all_partitions(last.offsets, topics), topics.ids, half_done)


def planned(spark: SparkSession, settings: Settings, generation: str, batch: int) -> Offsets | None:
    """Where that batch ends: Spark writes it down before the batch begins."""
    offsets = f"{checkpoint_of(settings, INGEST, generation)}/offsets"
    if str(batch) not in storage.names(spark, offsets):
        return None
    said: Any = json.loads(storage.text(spark, f"{offsets}/{batch}").splitlines()[-1])
    return dict(said)


def accept(spark: SparkSession, settings: Settings, names: list[str]) -> None:
    """Go on with these topics as they are now, from their beginnings: what is gone is gone, what was read stays."""
    if unknown := set(names) - set(FEED):
        raise OperatorError(f"The lake does not read {', '.join(sorted(unknown))}.", f"It reads {', '.join(FEED)}.")
    topics = look(spark, settings, FEED)
    last, _ = _last_two(settings)
    offsets = {**(last.offsets if last else {}), **{name: topics.beginnings[name] for name in names}}
    anew = Commit(str(uuid4()), ANEW, offsets, topics.ids)
    nothing = read(spark, settings, "bronze.events").limit(0)
    # Delta records no empty commit, unless it has the number of a transaction.
    named = {"txnAppId": f"{anew.generation}:accepted", "txnVersion": "0", "userMetadata": anew.metadata}
    writer = nothing.write.format("delta").mode("append").options(**named)
    writer.save(path_of(settings, "bronze.events"))


def _last_two(settings: Settings) -> tuple[Commit | None, Commit | None]:
    found = (commit_of(v) for v in versions(settings, "bronze.events") if v.said.get("query") == INGEST)
    return next(found, None), next(found, None)


def refuse_gaps(last: Commit, topics: Topics) -> None:
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
                    f"Publish them again from the store, or go on without them: till lake run --accept {name}.",
                )


def _between(spark: SparkSession, settings: Settings, before: Commit | None, last: Commit) -> DataFrame:
    """Bronze's rows of the last batch."""
    begun = before.offsets if before else {}
    ranges = [
        (sf.col("topic") == topic)
        & (sf.col("partition") == int(partition))
        & sf.col("offset").between(begun.get(topic, {}).get(partition, 0), end - 1)
        for topic, partitions in last.offsets.items()
        for partition, end in partitions.items()
    ]
    rows = read(spark, settings, "bronze.events")
    return rows.where(reduce(or_, ranges))


def _all_partitions(offsets: Offsets, topics: Topics) -> Offsets:
    """Spark wants to hear of every one, also of those that have been added since."""
    return {
        name: {partition: offsets.get(name, {}).get(partition, EARLIEST) for partition in ends}
        for name, ends in topics.ends.items()
    }
