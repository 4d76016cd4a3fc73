"""The Avro schemas that wrote the messages, by id: fetched from the registry once, then stored in the lake."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fastavro.schema import SchemaParseException

from analytics.catalog.events import WRITER_SCHEMA
from analytics.catalog.table import ddl
from analytics.lake import Lake
from analytics.settings import LakeSettings
from shared.schemas.contract.event_schemas import EventSchema, Schemas, load_schemas
from shared.schemas.registry import Registry

MOST_LOOKUPS = 100
"""Registry lookups per batch. Garbage may contain any number of ids; real ones are small and are looked up first."""


@dataclass(frozen=True, eq=False)
class WriterSchemas:
    texts: Mapping[int, str]
    """Schemas as JSON, by registry id."""
    schemas: Schemas
    """The schemas that the current code reads."""

    @cached_property
    def readable(self) -> Mapping[int, EventSchema]:
        return {schema_id: found for schema_id, found in self._judged.items() if isinstance(found, EventSchema)}

    @cached_property
    def unreadable(self) -> Mapping[int, str]:
        """Reasons by id, for schemas that the registry knows and the current code cannot use."""
        return {schema_id: found for schema_id, found in self._judged.items() if isinstance(found, str)}

    @cached_property
    def _judged(self) -> Mapping[int, EventSchema | str]:
        return {schema_id: self._judge(schema_id, text) for schema_id, text in self.texts.items()}

    def _judge(self, schema_id: int, text: str) -> EventSchema | str:
        try:
            record = self.schemas.plan_reading(text).writer["name"]
        except (ValueError, SchemaParseException) as error:
            return f"schema id {schema_id} cannot be used: {error}"
        if record not in self.schemas:
            return f"{record} is not in schemas/ as this lake knows it"
        ours = self.schemas.newest(record)
        return EventSchema(ours.folder, record, 0, ours.topic, json.loads(text))


def load_writer_schemas(lake: Lake) -> WriterSchemas:
    """Reads all schemas that the lake has stored so far."""
    rows = lake.read("bronze.schemas").collect()
    return WriterSchemas({row["schema_id"]: row["text"] for row in rows}, load_schemas())


def fetch_missing(lake: Lake, writers: WriterSchemas, schema_ids: Iterable[int]) -> WriterSchemas:
    """Looks up unknown ids in the registry and stores the schemas it has, so that one lookup is enough."""
    unknown = set(schema_ids) - writers.texts.keys()
    answered = asyncio.run(_look_up(lake.settings, unknown)) if unknown else {}
    if not answered:
        return writers
    frame = lake.spark.createDataFrame(sorted(answered.items()), ddl(WRITER_SCHEMA))
    frame.write.format("delta").mode("append").save(lake.path("bronze.schemas"))
    return WriterSchemas({**writers.texts, **answered}, writers.schemas)


async def _look_up(settings: LakeSettings, schema_ids: Iterable[int]) -> dict[int, str]:
    async with Registry(settings) as registry:
        answers = {n: await registry.schema_text(n) for n in sorted(schema_ids)[:MOST_LOOKUPS]}
    return {schema_id: text for schema_id, text in answers.items() if text is not None}
