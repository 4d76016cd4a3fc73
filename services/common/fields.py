"""Copies fields of the same name between commands, events and bodies, so that no step has to list every field."""

from collections.abc import Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")


def carry(record: type[Record], source: Any, **given: Any) -> Record:
    """Builds a dataclass from the given fields and, for all others, the fields of the same name in `source`.

    The source is an object or a mapping. A field that it lacks keeps its default; without one, that is a TypeError.
    """
    names = [name for name in record.__dataclass_fields__ if name not in given]  # type: ignore[attr-defined]
    if isinstance(source, Mapping):
        carried = {name: source[name] for name in names if name in source}
    else:
        carried = {name: getattr(source, name) for name in names if hasattr(source, name)}
    return record(**carried, **given)
