"""Encodes events to bytes and back: Avro in the Confluent wire format (byte 0, schema id, body)."""

import struct
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import schemaless_reader, schemaless_writer

from shared.schemas.contract.event_schemas import EventSchema, ReadingPlan
from shared.schemas.records import Convert, from_record, to_record

MAGIC = 0
PREFIX = struct.Struct(">bI")


class Undecodable(Exception):
    """The bytes are not an event that can be read; the message gives the reason."""


class UnknownSchema(Undecodable):
    """The schema id has not been learned yet."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(f"schema id {schema_id} is not known")
        self.schema_id = schema_id


class NotRegistered(KeyError):
    """The event has no schema id: the registry did not have its schema at the start, so it is never written."""


class _Writer(NamedTuple):
    """How to encode events of one class."""

    prefix: bytes
    schema: Any
    to_record: Convert


class _Reader(NamedTuple):
    """How to decode values of one schema id."""

    writer_schema: Any
    reader_schema: Any
    """The schema to resolve to; None if it is the writer's own, which is twice as fast."""
    convert: Convert | None
    record: str
    type: str


class Codec:
    """Writers and readers by schema id, one set per process.

    Writers are bound to their ids at the start; readers are added as schema ids turn up.
    """

    def __init__(self) -> None:
        self._writers: dict[type, _Writer] = {}
        self._readers: dict[int, _Reader] = {}

    def bind(self, event_type: type, schema: EventSchema, schema_id: int) -> None:
        """Makes `event_type` writable, with this schema under this id."""
        self._writers[event_type] = _Writer(PREFIX.pack(MAGIC, schema_id), schema.parsed, to_record(event_type))

    def learn(self, schema_id: int, plan: ReadingPlan, event_type: type | None = None) -> None:
        """Makes bytes with this schema id readable, as instances of `event_type` if given, else as plain fields."""
        self._readers[schema_id] = _Reader(
            writer_schema=plan.writer,
            reader_schema=None if plan.reader == plan.writer else plan.reader,
            convert=_compose(plan.upcast, from_record(event_type) if event_type else None),
            record=plan.record,
            type=plan.record.rpartition(".")[2],
        )

    def type_of(self, value: bytes) -> str:
        """Returns the type of the event that `decode` returns; for a retired event, its replacement's type."""
        return self._readers[schema_id_of(value)].type

    def encode(self, event: Any) -> bytes:
        try:
            prefix, schema, record = self._writers[type(event)]
        except KeyError:
            raise NotRegistered(f"{type(event).__name__} has no schema id: it cannot be written") from None
        out = BytesIO()
        out.write(prefix)
        schemaless_writer(out, schema, record(event))
        return out.getvalue()

    def decode(self, value: bytes) -> Any:
        """Returns the event, or the fields of a record that is not ours."""
        schema_id = schema_id_of(value)
        reader = self._readers.get(schema_id)
        if reader is None:
            raise UnknownSchema(schema_id)
        writer_schema, reader_schema, convert, record, _ = reader
        body = BytesIO(value)
        body.seek(PREFIX.size)
        try:
            data = schemaless_reader(body, writer_schema, reader_schema)
            event = convert(data) if convert else data
        except Exception as error:  # fastavro raises all sorts of exceptions on broken bytes
            raise Undecodable(f"not a {record}: {_explain(error)}") from error
        if left := len(value) - body.tell():
            raise Undecodable(f"{left} bytes are left over after a {record}")
        return event


def schema_id_of(value: bytes) -> int:
    if len(value) < PREFIX.size or value[0] != MAGIC:
        raise Undecodable("not in the wire format: it does not start with magic byte 0 and a schema id")
    schema_id: int = PREFIX.unpack_from(value)[1]
    return schema_id


def _explain(error: Exception) -> str:
    """Explains what fastavro raises on broken bytes. Inside a number, it indexes bytes that it could not read."""
    if isinstance(error, EOFError) or "string index" in str(error):
        return f"the bytes are cut short ({error})"
    if isinstance(error, IndexError):
        return f"a union or an enum is out of range ({error})"
    return f"{type(error).__name__}: {error}"


def _compose(first: Convert | None, second: Convert | None) -> Convert | None:
    if first and second:
        return lambda record: second(first(record))
    return first or second
