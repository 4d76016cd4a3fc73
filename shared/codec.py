"""Events to bytes and back: Avro in the Confluent wire format (byte 0, schema id, body)."""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
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


class NotRegistered(KeyError):
    """An event whose schema was not found in the registry at the start is never written."""


class Codec:
    """One per process. Writers are bound to the ids at start; readers are added as schema ids turn up."""

    def __init__(self) -> None:
        self._writers: dict[type, tuple[bytes, Any, Convert]] = {}
        self._readers: dict[int, tuple[Any, Any, Convert | None, str]] = {}

    def bind(self, event_type: type, schema: EventSchema, schema_id: int) -> None:
        self._writers[event_type] = (PREFIX.pack(MAGIC, schema_id), schema.parsed, to_record(event_type))

    def learn(
        self,
        schema_id: int,
        writer: Any,
        record: str,
        reader: Any = None,
        event_type: type | None = None,
        upcast: Convert | None = None,
    ) -> None:
        """Read `schema_id` (written with `writer`) as the `reader` schema, then as the `record` that replaced it where
        it is retired, into `event_type` where there is one.
        """
        reader = None if reader == writer else reader  # no resolution where there is nothing to resolve: twice as fast
        build = from_record(event_type) if event_type else None
        self._readers[schema_id] = writer, reader, _one_after_the_other(upcast, build), record

    def knows(self, schema_id: int) -> bool:
        return schema_id in self._readers

    def type_of(self, value: bytes) -> str:
        """The type of the event that `decode` makes of it; for a retired one, of the one that replaced it."""
        record = self._readers[schema_id_of(value)][3]
        return record.rpartition(".")[2]

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
        """The event (or, for a record that is not ours, its fields)."""
        schema_id = schema_id_of(value)
        known = self._readers.get(schema_id)
        if known is None:
            raise UnknownSchema(schema_id)
        writer, reader, build, record = known
        body = BytesIO(value)
        body.seek(PREFIX.size)
        try:
            data = schemaless_reader(body, writer, reader)
            event = build(data) if build else data
        except Exception as error:  # fastavro raises whatever broken bytes lead it to
            raise Undecodable(f"not a {record}: {_in_words(error)}") from error
        if left := len(value) - body.tell():
            raise Undecodable(f"{left} bytes are left over after a {record}")
        return event


def _in_words(error: Exception) -> str:
    """What fastavro raises of broken bytes. Inside a number, it indexes what it could not read."""
    if isinstance(error, EOFError) or "string index" in str(error):
        return f"the bytes are cut short ({error})"
    if isinstance(error, IndexError):
        return f"a union or an enum is out of range ({error})"
    return f"{type(error).__name__}: {error}"


def _one_after_the_other(first: Convert | None, second: Convert | None) -> Convert | None:
    if first and second:
        return lambda it: second(first(it))
    return first or second


def schema_id_of(value: bytes) -> int:
    if len(value) < PREFIX.size or value[0] != MAGIC:
        raise Undecodable("not in the wire format: no magic byte 0 and schema id in front")
    schema_id: int = PREFIX.unpack_from(value)[1]
    return schema_id


def to_record(event_type: type) -> Convert:
    """A function dataclass -> dict, for Avro to write."""
    return _compiled(event_type, _taken_apart)


def from_record(event_type: type) -> Convert:
    """A function dict -> dataclass."""
    return _compiled(event_type, _put_together)


Expression = Callable[[Any, str, dict[str, Any]], str]


def _compiled(event_type: type, expression: Expression) -> Convert:
    """Written out as one expression, as `dataclasses` does with `__init__`: a generic walk over the fields
    took three times as long, and half of a replay.
    """
    names: dict[str, Any] = {}
    source = f"lambda it: {expression(event_type, 'it', names)}"
    convert: Convert = eval(source, names)
    return convert


def _put_together(hint: Any, it: str, names: dict[str, Any]) -> str:
    if _is_record(hint):
        names[hint.__name__] = hint
        arguments = (_put_together(inner, f"{it}[{name!r}]", names) for name, inner in _fields(hint))
        return f"{hint.__name__}({', '.join(arguments)})"
    return _composed(hint, it, names, _put_together, {tuple: "tuple", frozenset: "frozenset"})


def _taken_apart(hint: Any, it: str, names: dict[str, Any]) -> str:
    if _is_record(hint):
        items = (f"{name!r}: {_taken_apart(inner, f'{it}.{name}', names)}" for name, inner in _fields(hint))
        return "{" + ", ".join(items) + "}"
    return _composed(hint, it, names, _taken_apart, {tuple: "list", frozenset: "sorted"})


def _composed(hint: Any, it: str, names: dict[str, Any], expression: Expression, several: dict[type, str]) -> str:
    """`tuple[X, ...]`, `frozenset[X]`, `Mapping[str, X]` and `X | None` of something; anything else is as it is."""
    origin = get_origin(hint)
    if origin in several:
        return f"{several[origin]}([{expression(get_args(hint)[0], 'one', names)} for one in {it}])"
    if origin is Mapping:
        return f"{{key: {expression(get_args(hint)[1], 'one', names)} for key, one in {it}.items()}}"
    if origin is UnionType:
        return f"(None if {it} is None else {expression(get_args(hint)[0], it, names)})"
    return it


def _is_record(hint: Any) -> bool:
    """A dataclass or a NamedTuple."""
    return isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields"))


def _fields(event_type: Any) -> Iterable[tuple[str, Any]]:
    hints = get_type_hints(event_type)
    names = event_type._fields if hasattr(event_type, "_fields") else event_type.__dataclass_fields__
    return [(name, hints[name]) for name in names]
