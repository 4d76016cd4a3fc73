"""Types of Delta as DuckDB spells them."""

from typing import Any

PLAIN = {
    "string": "VARCHAR",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def duckdb_type(delta: Any) -> str:
    """Translates a type from the schema of a Delta table."""
    match delta:
        case {"type": "struct", "fields": fields}:
            typed = (f"{quoted(field['name'])} {duckdb_type(field['type'])}" for field in fields)
            return f"STRUCT({', '.join(typed)})"
        case {"type": "array", "elementType": element}:
            return f"{duckdb_type(element)}[]"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"MAP({duckdb_type(key)}, {duckdb_type(value)})"
        case str() if delta.startswith("decimal("):
            return delta.upper()
        case _:
            return PLAIN[delta]


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
