"""The schemas that wrote what is in the topics, by their id: asked of the registry once, and kept in the lake."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fastavro.schema import SchemaParseException
from pyspark.sql import SparkSession

from analytics.tables import SCHEMA, path_of, read, struct
from shared.registry import Registry
from shared.schemas import EventSchema, Schemas, load_schemas
from shared.settings import Settings

MOST_ASKED = 100
"""Garbage has any number of ids. Ours are small ones, and those are asked for first."""


@dataclass(frozen=True, eq=False)
class Writers:
    texts: Mapping[int, str]
    schemas: Schemas
    """With which today's code reads."""

    @cached_property
    def readable(self) -> Mapping[int, EventSchema]:
        return {schema_id: found for schema_id, found in self._judged.items() if isinstance(found, EventSchema)}

    @cached_property
    def unreadable(self) -> Mapping[int, str]:
        """Ids that the registry knows and we cannot use, and why."""
        return {schema_id: found for schema_id, found in self._judged.items() if isinstance(found, str)}

    @cached_property
    def _judged(self) -> Mapping[int, EventSchema | str]:
        return {schema_id: self._judge(schema_id, text) for schema_id, text in self.texts.items()}

    def _judge(self, schema_id: int, text: str) -> EventSchema | str:
        try:
            record = self.schemas.reading(text).writer["name"]
        except (ValueError, SchemaParseException) as error:
            return f"schema id {schema_id} cannot be used: {error}"
        if record not in self.schemas:
            return f"{record} is not in schemas/ as this lake knows it"
        ours = self.schemas.newest(record)
        return EventSchema(ours.folder, record, 0, ours.topic, json.loads(text))


def known(spark: SparkSession, settings: Settings, schemas: Schemas | None = None) -> Writers:
    """All that the lake has met so far."""
    rows = read(spark, settings, "bronze.schemas").collect()
    return Writers({row["schema_id"]: row["text"] for row in rows}, schemas or load_schemas())


def learned(spark: SparkSession, settings: Settings, writers: Writers, met: Iterable[int]) -> Writers:
    """With those of these ids that the registry knows; kept, so that from now on it need not be asked."""
    unknown = set(met) - writers.texts.keys()
    answered = asyncio.run(_ask(settings, unknown)) if unknown else {}
    if not answered:
        return writers
    frame = spark.createDataFrame(sorted(answered.items()), struct(SCHEMA))
    frame.write.format("delta").mode("append").save(path_of(settings, "bronze.schemas"))
    return Writers({**writers.texts, **answered}, writers.schemas)


async def _ask(settings: Settings, schema_ids: Iterable[int]) -> dict[int, str]:
    async with Registry(settings) as registry:
        answers = {n: await registry.schema_text(n) for n in sorted(schema_ids)[:MOST_ASKED]}
    return {schema_id: text for schema_id, text in answers.items() if text is not None}
