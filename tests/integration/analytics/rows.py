"""Makes rows of Spark and of DuckDB comparable."""

from collections.abc import Iterable
from typing import Any


def plain(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Sorts the rows and converts Spark's structs and byte arrays to plain values."""
    return sorted(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return bytes(value) if isinstance(value, bytearray) else value
