"""Reads values of any topic and writes nothing: by the schemas that a service remembers, or the registry knows."""

from typing import Any

from fastavro.schema import SchemaParseException

from shared.codec import PREFIX, Codec, Undecodable, UnknownSchema, schema_id_of
from shared.database import Pool
from shared.decider import Decider
from shared.registry import Registry
from shared.schemas import Schemas
from shared.settings import Settings


class Decoder:
    """With a decider, its events come as their classes; all others as their fields."""

    def __init__(
        self,
        settings: Settings,
        schemas: Schemas,
        pool: "Pool | None" = None,
        decider: Decider[Any, Any, Any] | None = None,
    ) -> None:
        self._settings = settings
        self._schemas = schemas
        self._pool = pool
        self._codec = Codec()
        self.decode_known = self._codec.decode
        """Without a wait: raises `UnknownSchema` for what has not been met before."""
        self._kinds: dict[bytes, str] = {}
        self._old: set[int] = set()
        types = {event.__name__: event for event in decider.events} if decider else {}
        ours = schemas.of_topic(decider.topic) if decider else []
        self._types = {schema.record: types[schema.type] for schema in ours if schema.type in types}

    async def decode(self, value: bytes) -> Any:
        """The event as today's code knows it."""
        try:
            return self.decode_known(value)
        except UnknownSchema:
            await self._learn(schema_id_of(value))
        return self.decode_known(value)

    def type_of(self, value: bytes) -> str:
        """Of what `decode` has made of it."""
        prefix = value[: PREFIX.size]
        if prefix not in self._kinds:
            self._kinds[prefix] = self._codec.type_of(value)
        return self._kinds[prefix]

    def is_old(self, value: bytes) -> bool:
        """Whether it was written with a schema that has been replaced since."""
        return schema_id_of(value) in self._old

    async def _learn(self, schema_id: int) -> None:
        text = await self._remembered(schema_id) or await self._registered(schema_id)
        try:
            reading = self._schemas.reading(text)
        except (ValueError, SchemaParseException) as error:
            raise Undecodable(f"schema id {schema_id} cannot be used: {error}") from error
        if reading.upcast or reading.reader != reading.writer:
            self._old.add(schema_id)
        event_type = self._types.get(reading.record)
        self._codec.learn(schema_id, reading.writer, reading.record, reading.reader, event_type, reading.upcast)

    async def _remembered(self, schema_id: int) -> str | None:
        if self._pool is None:
            return None
        text: str | None = await self._pool.fetchval("SELECT schema_text FROM schemas WHERE id = $1 LIMIT 1", schema_id)
        return text

    async def _registered(self, schema_id: int) -> str:
        async with Registry(self._settings) as registry:
            text = await registry.schema_text(schema_id)
        if text is None:
            raise Undecodable(f"the registry knows no schema with id {schema_id}")
        return text
