"""Events to bytes and back: Avro in the Confluent wire format (byte 0, schema id, body)."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from io import BytesIO
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from fastavro import schemaless_reader, schemaless_writer

from shared.schemas import EventSchema

MAGIC = 0
PREFIX = struct.Struct(">bI")

Convert = Callable[[Any], Any]


class Undecodable(Exception):
    """These bytes are no event we can read; the message says why."""


class UnknownSchema(Undecodable):
    def __init__(self, schema_id: int) -> None:
        super().__init__(f"schema id {schema_id} is not known")
        self.schema_id = schema_id


class Codec:
    """One per process. Writers are bound to the ids at start; readers are added as schema ids turn up."""

    def __init__(self) -> None:
        self._writers: dict[type, tuple[bytes, Any, Convert]] = {}
        self._readers: dict[int, Convert] = {}
        self._types: dict[int, str] = {}

    def bind(self, event_type: type, schema: EventSchema, schema_id: int) -> None:
        self._writers[event_type] = (PREFIX.pack(MAGIC, schema_id), schema.parsed, to_record(event_type))

    def learn(
        self, schema_id: int, writer: Any, record: str, reader: Any = None, event_type: type | None = None
    ) -> None:
        """Read `schema_id` (written with `writer`) as the `reader` schema, into `event_type` where there is one."""
        build = from_record(event_type) if event_type else None
        reader = None if reader == writer else reader  # no resolution where there is nothing to resolve: twice as fast

        def read(body: BytesIO) -> Any:
            data = schemaless_reader(body, writer, reader)
            return build(data) if build else data

        self._readers[schema_id] = read
        self._types[schema_id] = record

    def knows(self, schema_id: int) -> bool:
        return schema_id in self._readers

    def encode(self, event: Any) -> bytes:
        prefix, schema, record = self._writers[type(event)]
        out = BytesIO()
        out.write(prefix)
        schemaless_writer(out, schema, record(event))
        return out.getvalue()

    def decode(self, value: bytes) -> Any:
        """The event (or, for a record that is not ours, its fields)."""
        schema_id = schema_id_of(value)
        read = self._readers.get(schema_id)
        if read is None:
            raise UnknownSchema(schema_id)
        body = BytesIO(value)
        body.seek(PREFIX.size)
        try:
            event = read(body)
        except Exception as error:  # fastavro raises whatever broken bytes lead it to
            raise Undecodable(f"not a {self._types[schema_id]}: {type(error).__name__}: {error}") from error
        if body.tell() != len(value):
            raise Undecodable(f"{len(value) - body.tell()} bytes are left over after a {self._types[schema_id]}")
        return event


def schema_id_of(value: bytes) -> int:
    if len(value) < PREFIX.size or value[0] != MAGIC:
        raise Undecodable("not in the wire format: no magic byte 0 and schema id in front")
    schema_id: int = PREFIX.unpack_from(value)[1]
    return schema_id


def to_record(event_type: type) -> Convert:
    """A function dataclass -> dict, with the types looked at once."""
    plan = [(f.name, _downwards(hint)) for f, hint in _hints(event_type)]

    def convert(event: Any) -> dict[str, Any]:
        return {name: getattr(event, name) if down is None else down(getattr(event, name)) for name, down in plan}

    return convert


def from_record(event_type: type) -> Convert:
    """A function dict -> dataclass. Only nested values need work; plain fields go in as they are."""
    nested = [(f.name, up) for f, hint in _hints(event_type) if (up := _upwards(hint))]

    def convert(record: dict[str, Any]) -> Any:
        for name, up in nested:
            record[name] = up(record[name])
        return event_type(**record)

    return convert


def _hints(event_type: type) -> Iterable[tuple[Any, Any]]:
    hints = get_type_hints(event_type)
    return [(f, hints[f.name]) for f in fields(event_type)]


def _downwards(hint: Any) -> Convert | None:
    return _nested(hint, to_record, list)


def _upwards(hint: Any) -> Convert | None:
    return _nested(hint, from_record, tuple)


def _nested(hint: Any, of_dataclass: Callable[[type], Convert], sequence: type) -> Convert | None:
    if isinstance(hint, type) and is_dataclass(hint):
        return of_dataclass(hint)
    if get_origin(hint) is tuple:
        inner = _nested(get_args(hint)[0], of_dataclass, sequence)
        return lambda items: sequence(inner(i) for i in items) if inner else sequence(items)
    if get_origin(hint) is UnionType:  # only X | None is used
        inner = _nested(get_args(hint)[0], of_dataclass, sequence)
        return (lambda value: None if value is None else inner(value)) if inner else None
    return None
