"""Decodes the values of any topic or store, and learns a schema when its id turns up for the first time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from fastavro.schema import SchemaParseException

from shared.schemas.codec import Codec, Undecodable, UnknownSchema, schema_id_of
from shared.schemas.contract.event_schemas import ReadingPlan, Schemas
from shared.schemas.schema_table import SchemaTable
from shared.store.database import Pool

if TYPE_CHECKING:
    from shared.decider import Decider
    from shared.settings import Settings


class SchemaSource(Protocol):
    """A place that may have the text of a schema: a service's `schemas` table, or the registry."""

    async def schema_text(self, schema_id: int) -> str | None: ...


class Decoder:
    """Decodes values with schemas from `sources`, which are asked in order, each id once.

    Records in `event_types` (by full name) become instances of these classes; all others become their fields.
    With `keep`, a schema found elsewhere is stored there, so that the registry is not needed for it again.
    """

    def __init__(
        self,
        schemas: Schemas,
        sources: Sequence[SchemaSource],
        event_types: Mapping[str, type] | None = None,
        codec: Codec | None = None,
        keep: SchemaTable | None = None,
    ) -> None:
        self._schemas = schemas
        self._sources = sources
        self._event_types = dict(event_types or {})
        self._codec = codec or Codec()
        self._keep = keep
        self._old: set[int] = set()
        self.decode_known = self._codec.decode
        """Decodes without waiting; raises `UnknownSchema` for a schema id that was not met before."""

    @classmethod
    def for_reading(
        cls,
        schemas: Schemas,
        pool: "Pool | None" = None,
        decider: "Decider[Any, Any, Any] | None" = None,
        settings: "Settings | None" = None,
    ) -> Self:
        """Makes a decoder that writes nothing: it reads the service's table in `pool`, then the registry.

        The events of `decider` become instances of their classes.
        """
        tables = [SchemaTable(pool)] if pool else []
        classes = {event_type.__name__: event_type for event_type in decider.events} if decider else {}
        own = schemas.newest_of_topic(decider.topic) if decider else []
        event_types = {schema.record: classes[schema.type] for schema in own if schema.type in classes}
        return cls(schemas, [*tables, RegistryOnDemand(settings)], event_types)

    async def decode(self, value: bytes) -> Any:
        """Returns the event as today's code has it, or its fields if it is not one of `event_types`."""
        try:
            return self.decode_known(value)
        except UnknownSchema as unknown:
            await self._find(unknown.schema_id)
        return self.decode_known(value)

    def type_of(self, value: bytes) -> str:
        """Returns the type of what `decode` made of this value; the header `ce_type` has the type as written."""
        return self._codec.type_of(value)

    def is_old(self, value: bytes) -> bool:
        """Tells whether a decoded value was written with a schema that has been replaced since."""
        return schema_id_of(value) in self._old

    def read_as(self, record: str, event_type: type) -> None:
        """Makes values of this record instances of `event_type`, for schemas that are learned from now on."""
        self._event_types[record] = event_type

    def learn(self, schema_id: int, text: str) -> ReadingPlan:
        """Makes values with this schema id readable."""
        plan = self._schemas.plan_reading(text)
        self._codec.learn(schema_id, plan, self._event_types.get(plan.record))
        if plan.is_old:
            self._old.add(schema_id)
        return plan

    async def _find(self, schema_id: int) -> None:
        for source in self._sources:
            if (text := await source.schema_text(schema_id)) is not None:
                break
        else:
            raise Undecodable(f"the registry has no schema with id {schema_id}")
        try:
            plan = self.learn(schema_id, text)
        except (ValueError, SchemaParseException) as error:
            raise Undecodable(f"schema id {schema_id} cannot be used: {error}") from error
        if self._keep and source is not self._keep:
            await self._keep.add(schema_id, plan.writer["name"], text)


class RegistryOnDemand:
    """Opens the registry for a single question: few readers ever have one, and its client is slow to import."""

    def __init__(self, settings: "Settings | None" = None) -> None:
        self._settings = settings

    async def schema_text(self, schema_id: int) -> str | None:
        from shared.schemas.registry import Registry
        from shared.settings import Settings

        async with Registry(self._settings or Settings.load()) as registry:
            return await registry.schema_text(schema_id)
