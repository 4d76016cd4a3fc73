"""Converts between event classes and the dictionaries that fastavro reads and writes.

`to_record` and `from_record` compile a converter for a class once, as one expression, the way `dataclasses` compiles
`__init__`. `walk_to_record` and `walk_from_record` are the plain versions, a walk over the fields; a property test
compares the two.

What it buys, by timeit: an `ItemAdded` takes 0.3 µs to write and 1 to 2 µs to read, with the walk 8 to 19 µs each; an
`OrderPlaced` of three lines takes 2 and 5 to 8 µs, with the walk 35 to 70 µs each. fastavro itself takes 6 and 25 µs,
so with the walk most of a replay would be conversion. cattrs compiles in the same way and writes as fast, but it
takes about twice as long to read, and its import adds 20 ms to reading commands such as `till state`; that of this
module adds 2 ms.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

Convert = Callable[[Any], Any]


def to_record(event_type: type) -> Convert:
    """Compiles a function from an instance of `event_type` to a dictionary."""
    return _compile(event_type, _to_dictionary)


def from_record(event_type: type) -> Convert:
    """Compiles a function from a dictionary to an instance of `event_type`."""
    return _compile(event_type, _to_instance)


def walk_to_record(hint: Any, value: Any) -> Any:
    """Converts an instance of `hint` to a dictionary, field by field."""
    if _is_record(hint):
        return {name: walk_to_record(inner, getattr(value, name)) for name, inner in _fields(hint)}
    return _walk_composed(hint, value, walk_to_record, {tuple: list, frozenset: sorted})


def walk_from_record(hint: Any, value: Any) -> Any:
    """Converts a dictionary to an instance of `hint`, field by field."""
    if _is_record(hint):
        return hint(*(walk_from_record(inner, value[name]) for name, inner in _fields(hint)))
    return _walk_composed(hint, value, walk_from_record, {tuple: tuple, frozenset: frozenset})


def _walk_composed(hint: Any, value: Any, walk: Callable[[Any, Any], Any], collections: Mapping[Any, Convert]) -> Any:
    match get_origin(hint):
        case origin if origin in collections:
            return collections[origin]([walk(get_args(hint)[0], item) for item in value])
        case origin if origin is Mapping:
            return {key: walk(get_args(hint)[1], item) for key, item in value.items()}
        case origin if origin is UnionType:
            return None if value is None else walk(get_args(hint)[0], value)
        case _:
            return value


Expression = Callable[[Any, str, dict[str, Any]], str]


def _compile(event_type: type, expression: Expression) -> Convert:
    names: dict[str, Any] = {}
    source = f"lambda it: {expression(event_type, 'it', names)}"
    convert: Convert = eval(source, names)  # made of the field names of our own classes, never of data
    return convert


def _to_instance(hint: Any, it: str, names: dict[str, Any]) -> str:
    if _is_record(hint):
        names[hint.__name__] = hint
        arguments = (_to_instance(inner, f"{it}[{name!r}]", names) for name, inner in _fields(hint))
        return f"{hint.__name__}({', '.join(arguments)})"
    return _composed(hint, it, names, _to_instance, {tuple: "tuple", frozenset: "frozenset"})


def _to_dictionary(hint: Any, it: str, names: dict[str, Any]) -> str:
    if _is_record(hint):
        items = (f"{name!r}: {_to_dictionary(inner, f'{it}.{name}', names)}" for name, inner in _fields(hint))
        return "{" + ", ".join(items) + "}"
    return _composed(hint, it, names, _to_dictionary, {tuple: "list", frozenset: "sorted"})


def _composed(hint: Any, it: str, names: dict[str, Any], expression: Expression, collections: dict[type, str]) -> str:
    """Builds the expression for `tuple[X, ...]`, `frozenset[X]`, `Mapping[str, X]` and `X | None`; others are kept."""
    origin = get_origin(hint)
    if origin in collections:
        return f"{collections[origin]}([{expression(get_args(hint)[0], 'one', names)} for one in {it}])"
    if origin is Mapping:
        return f"{{key: {expression(get_args(hint)[1], 'one', names)} for key, one in {it}.items()}}"
    if origin is UnionType:
        return f"(None if {it} is None else {expression(get_args(hint)[0], it, names)})"
    return it


def _is_record(hint: Any) -> bool:
    """Tells whether the type is a dataclass or a NamedTuple."""
    return isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields"))


@cache
def _fields(event_type: Any) -> Iterable[tuple[str, Any]]:
    hints = get_type_hints(event_type)
    names = event_type._fields if hasattr(event_type, "_fields") else event_type.__dataclass_fields__
    return [(name, hints[name]) for name in names]
