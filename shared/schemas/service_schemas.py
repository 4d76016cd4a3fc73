"""Prepares the schemas of a service at its start: ids for what it writes, readers for all that may come in."""

from collections.abc import Collection
from contextlib import suppress

from shared.errors import OperatorError
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.decoder import Decoder
from shared.schemas.registry import Registry, RegistryUnavailable
from shared.schemas.schema_table import SchemaTable
from shared.store.database import Pool


class ServiceSchemas:
    """The codec for writing and the decoder for reading, filled from the service's table and the registry."""

    def __init__(self, pool: Pool, registry: Registry, schemas: Schemas, codec: Codec) -> None:
        self._registry = registry
        self._schemas = schemas
        self._codec = codec
        self._table = SchemaTable(pool)
        self.decoder = Decoder(schemas, [self._table, registry], codec=codec, keep=self._table)

    async def bind(self, topic: str, event_types: tuple[type, ...]) -> None:
        """Finds the schema id of every event the service writes to `topic`.

        Without these ids nothing can be written, so a missing one is an error that stops the start.
        """
        newest = {schema.type: schema for schema in self._schemas.newest_of_topic(topic)}
        for event_type in event_types:
            schema = newest.get(event_type.__name__)
            if schema is None:
                raise OperatorError(
                    f"{event_type.__name__} has no schema for {topic}.", "Write its .avsc; see schemas/ for others."
                )
            self.decoder.read_as(schema.record, event_type)
            schema_id = await self._id_of(schema)
            if schema_id is None:
                raise OperatorError(
                    f"The registry does not have {schema.record} version {schema.version} ({schema.subject}).",
                    "Register it with: till schemas push",
                )
            self._codec.bind(event_type, schema, schema_id)
        # The store may hold any version that was ever written, retired events included, and folds must not wait.
        await self.follow([topic])

    async def follow(self, topics: Collection[str]) -> None:
        """Learns every schema that may come in these topics: at its first message, the registry may be down."""
        stored = {(subject, text) for _, subject, text in await self._table.rows()}
        with suppress(RegistryUnavailable):  # what was ever read here is in the table
            for schema in self._schemas.all:
                if schema.topic in topics and (schema.subject, schema.text) not in stored:
                    await self._id_of(schema)
        for schema_id, _, text in await self._table.rows():
            self.decoder.learn(schema_id, text)

    async def _id_of(self, schema: EventSchema) -> int | None:
        schema_id = await self._table.id_of(schema)
        if schema_id is None and (schema_id := await self._registry.lookup(schema)) is not None:
            await self._table.add(schema_id, schema.subject, schema.text)
        return schema_id
