"""A first look at a batch, before any of it is decoded: which schemas wrote it, and whether any of it came before.

By Arrow on the driver, not by a join in Spark: that took most of the CPU of a small batch, to find nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.ingest.duplicates import PREFIX, UPPER, ranges_of
from analytics.paths import path_of
from analytics.tables import TOPICS
from shared import codec
from shared.settings import Settings


@dataclass(frozen=True)
class Glance:
    """What a batch has of one topic."""

    rows: int
    schema_ids: set[int]
    prefixes: list[str]
    """How its event ids begin."""
    repeats: bool
    """Some event came before, in this batch or in the table."""


def glances(rows: DataFrame, settings: Settings) -> dict[str, Glance]:
    """By topic, of those that silver has. The size of a batch is bounded, and so is what comes to the driver."""
    event_id = sf.map_from_entries("headers")["ce_id"].cast("string").alias("event_id")
    frame = sf.substring("value", 1, codec.PREFIX.size).alias("frame")
    seen: Any = rows.select("topic", event_id, frame).toArrow()
    return {
        topic: _glance(seen.filter(pc.field("topic") == topic), settings, TOPICS[topic])
        for topic in pc.unique(seen["topic"]).to_pylist()
        if topic in TOPICS
    }


def _glance(seen: Any, settings: Settings, table: str) -> Glance:
    ids = seen["event_id"].drop_null()
    prefixes = pc.unique(pc.utf8_slice_codeunits(ids, 0, PREFIX)).to_pylist()
    repeats = len(pc.unique(ids)) < len(ids) or _came_before(ids, prefixes, settings, table)
    frames = pc.unique(seen["frame"]).to_pylist()
    return Glance(len(seen), {n for n in map(_schema_id, frames) if n is not None}, prefixes, repeats)


def _came_before(ids: Any, prefixes: list[str], settings: Settings, table: str) -> bool:
    """Looks only into files whose ids are in the same ranges."""
    ranges = [
        (pc.field("event_id") >= low) & (pc.field("event_id") <= f"{high}{UPPER}") for low, high in ranges_of(prefixes)
    ]
    if not ranges:
        return False
    silver: Any = DeltaTable(path_of(settings, f"silver.{table}")).to_pyarrow_dataset()
    before = silver.to_table(columns=["event_id"], filter=reduce(or_, ranges))["event_id"]
    return bool(pc.any(pc.is_in(before, value_set=pa.array(ids.to_pylist(), before.type))).as_py())


def _schema_id(frame: bytes | None) -> int | None:
    try:
        return codec.schema_id_of(frame or b"")
    except codec.Undecodable:
        return None


def met(found: Mapping[str, Glance]) -> set[int]:
    return {schema_id for glance in found.values() for schema_id in glance.schema_ids}
