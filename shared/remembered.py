"""Reads the events of a service that need not run: by the schemas it has remembered in its database."""

from typing import Any

from fastavro.schema import SchemaParseException

from shared.codec import Codec, Undecodable, schema_id_of
from shared.database import Pool
from shared.decider import Decider
from shared.schemas import Schemas


class Remembered:
    """Learns a schema when it meets its id. The registry is asked only for what the service has never seen."""

    def __init__(self, pool: Pool, schemas: Schemas, decider: Decider[Any, Any, Any]) -> None:
        self._pool = pool
        self._codec = Codec()
        self._schemas = schemas
        types = {event_type.__name__: event_type for event_type in decider.events}
        self._event_types = {
            schema.record: types[schema.type]
            for schema in self._schemas.of_topic(decider.topic)
            if schema.type in types
        }

    async def decode(self, value: bytes) -> Any:
        """The event as today's code knows it."""
        if not self._codec.knows(schema_id := schema_id_of(value)):
            await self._learn(schema_id)
        return self._codec.decode(value)

    def type_of(self, value: bytes) -> str:
        """Of what `decode` has made of it."""
        return self._codec.type_of(value)

    async def _learn(self, schema_id: int) -> None:
        text = await self._pool.fetchval("SELECT schema_text FROM schemas WHERE id = $1 LIMIT 1", schema_id)
        try:
            reading = self._schemas.reading(text or await self._registered(schema_id))
        except (ValueError, SchemaParseException) as error:
            raise Undecodable(f"schema id {schema_id} cannot be used: {error}") from error
        event_type = self._event_types.get(reading.record)
        self._codec.learn(schema_id, reading.writer, reading.record, reading.reader, event_type, reading.upcast)

    async def _registered(self, schema_id: int) -> str:
        # Each of them takes longer to import than all the rest.
        from shared.registry import Registry
        from shared.settings import Settings

        async with Registry(Settings.load()) as registry:
            text = await registry.schema_text(schema_id)
        if text is None:
            raise Undecodable(f"the registry knows no schema with id {schema_id}")
        return text
