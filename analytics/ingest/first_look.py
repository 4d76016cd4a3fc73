"""A first look at a batch before it is decoded: which schemas wrote it, and whether it repeats earlier events.

Uses Arrow on the driver. A join in Spark took most of the CPU time of a small batch, to find no repetition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.catalog import TOPICS
from analytics.ingest.deduplication import PREFIX, UPPER, ranges_of
from analytics.lake import LakeFiles
from shared.schemas import codec


@dataclass(frozen=True)
class FirstLook:
    """Summary of one topic's messages in a batch."""

    rows: int
    schema_ids: set[int]
    prefixes: list[str]
    """Leading digits of its event ids."""
    has_repeats: bool
    """True if some event id occurs twice in the batch, or is in the table already."""


def look_at(rows: DataFrame, lake: LakeFiles) -> dict[str, FirstLook]:
    """Summarizes a batch by topic. The size of a batch is bounded, and so is what comes to the driver."""
    event_id = sf.map_from_entries("headers")["ce_id"].cast("string").alias("event_id")
    frame = sf.substring("value", 1, codec.PREFIX.size).alias("frame")
    seen: Any = rows.select("topic", event_id, frame).toArrow()
    return {
        topic: _look_at_topic(seen.filter(pc.field("topic") == topic), lake, TOPICS[topic])
        for topic in pc.unique(seen["topic"]).to_pylist()
        if topic in TOPICS
    }


def schema_ids(looks: Mapping[str, FirstLook]) -> set[int]:
    """Returns the ids of all schemas that wrote the batch."""
    return {schema_id for look in looks.values() for schema_id in look.schema_ids}


def _look_at_topic(seen: Any, lake: LakeFiles, table: str) -> FirstLook:
    ids = seen["event_id"].drop_null()
    prefixes = pc.unique(pc.utf8_slice_codeunits(ids, 0, PREFIX)).to_pylist()
    repeats = len(pc.unique(ids)) < len(ids) or _is_in_table(ids, prefixes, lake, table)
    frames = pc.unique(seen["frame"]).to_pylist()
    return FirstLook(len(seen), {n for n in map(_schema_id, frames) if n is not None}, prefixes, repeats)


def _is_in_table(ids: Any, prefixes: list[str], lake: LakeFiles, table: str) -> bool:
    """Tells whether the table has any of these ids. Reads only files whose ids are in the same ranges."""
    ranges = [
        (pc.field("event_id") >= low) & (pc.field("event_id") <= f"{high}{UPPER}") for low, high in ranges_of(prefixes)
    ]
    if not ranges:
        return False
    silver: Any = lake.snapshot(f"silver.{table}").to_pyarrow_dataset()
    there = silver.to_table(columns=["event_id"], filter=reduce(or_, ranges))["event_id"]
    return bool(pc.any(pc.is_in(there, value_set=pa.array(ids.to_pylist(), there.type))).as_py())


def _schema_id(frame: bytes | None) -> int | None:
    try:
        return codec.schema_id_of(frame or b"")
    except codec.Undecodable:
        return None
