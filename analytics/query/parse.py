"""Finds the tables of a query with DuckDB's own parser, before anything is opened, and refuses all but SELECT."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

READ_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
# These functions run SQL that is passed to them as text, which this parser does not see.
SQL_FUNCTIONS = {"query", "json_execute_serialized_sql"}
# The only column of the lake that is a reserved word of SQL.
UNQUOTED_OFFSET = re.compile(r'(?<![."])\boffset\b(?!")', re.IGNORECASE)


class WrongQuery(Exception):
    """The query cannot be answered as it is. The message is one line for its author."""


@dataclass(frozen=True)
class Query:
    sql: str
    tables: tuple[str, ...]
    """Tables that it reads, as `layer.name`; without those that it defines itself."""


def parse(connection: duckdb.DuckDBPyConnection, sql: str) -> Query:
    [(found,)] = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    document = json.loads(found)
    if document["error"]:
        raise WrongQuery(_refusal(document, sql))
    if len(document["statements"]) != 1:
        count = "more than one query" if document["statements"] else "no query"
        raise WrongQuery(f"There is {count} in it: one SELECT at a time.")
    nodes = list(_nodes(document))
    for node in nodes:
        _check(node)
    named = [(node["schema_name"], node["table_name"]) for node in nodes if node.get("type") == "BASE_TABLE"]
    return Query(sql, tuple(dict.fromkeys(f"{schema}.{name}" for schema, name in named if schema)))


def _check(node: dict[str, Any]) -> None:
    kind = node.get("type")
    if isinstance(kind, str) and kind.endswith("_NODE") and kind not in READ_NODES:
        raise WrongQuery(f"The lake is only read here, and this has {kind.split('_')[0]} in it.")
    if node.get("function_name") in SQL_FUNCTIONS:
        raise WrongQuery(f"{node['function_name']}() is not available here.")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yields every object of a tree, depth first."""
    if isinstance(tree, dict):
        yield tree
        for branch in tree.values():
            yield from _nodes(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _nodes(branch)


def _refusal(document: dict[str, Any], sql: str) -> str:
    if document["error_type"] != "parser":
        return "The lake is only read here: SELECT, DESCRIBE, SUMMARIZE and SHOW ALL TABLES are understood."
    message = " ".join(document["error_message"].split())
    if UNQUOTED_OFFSET.search(sql):
        message += '. If offset is meant as a column, write it in quotes: "offset"'
    elif place := document.get("position"):
        message += f": …{' '.join(sql[max(0, int(place) - 20) :].split())[:60]}"
    return message[0].upper() + message[1:]
