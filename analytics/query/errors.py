"""Turns DuckDB's errors into one line, with the names that may have been meant."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches

import duckdb

from analytics.query.parse import WrongQuery
from shared.errors import OperatorError

COLUMN = re.compile(r'column (?:named )?"([^"]+)" (?:not found|does not exist)|does not have a column named "([^"]+)"')
TABLE = re.compile(r"Table with name (\S+) does not exist")
KIND = re.compile(r"^[\w ]*Error: ")

Columns = Mapping[str, Iterable[str]]
"""Column names by table."""


@contextmanager
def reworded(tables: Iterable[str], columns: Columns) -> Iterator[None]:
    """Rewords errors of the block. `columns` are those of the tables that the query reads, `tables` all there are."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise OperatorError(f"The query needs too much memory: {_line(error)}", "Select less at once.") from error
    except duckdb.IOException as error:
        raise OperatorError(
            f"A file of the lake cannot be read: {_line(error)}",
            "If it was cleaned up in the meantime: run the query again.",
        ) from error
    except duckdb.Error as error:
        raise WrongQuery(_reworded(str(error), list(tables), columns)) from error


def no_such_table(name: str, tables: Iterable[str]) -> str:
    near = _near(name, tables, key=lambda table: table.rpartition(".")[2])
    return f"There is no table {name}." + (f" Did you mean {near}?" if near else f" There are: {', '.join(tables)}.")


def _reworded(message: str, tables: list[str], columns: Columns) -> str:
    if found := TABLE.search(message):
        return no_such_table(found[1].strip('"'), tables)
    if found := COLUMN.search(message):
        name = found[1] or found[2]
        there = list(dict.fromkeys(column for of_table in columns.values() for column in of_table))
        near = _near(name, there)
        return f"There is no column {name}." + (
            f" Did you mean {near}?" if near else f" There are: {', '.join(there)}."
        )
    return _line(message)


def _near(name: str, names: Iterable[str], key: Callable[[str], str] = str) -> str:
    """Finds names that look alike or contain this one; a table also by the last part of its name."""
    wanted = name.lower()
    by_key = {key(other).lower(): other for other in names} | {other.lower(): other for other in names}
    close = get_close_matches(wanted, by_key, n=3, cutoff=0.7)
    close += [other for other in by_key if len(wanted) > 2 and (wanted in other or key(wanted) in other)]
    return " or ".join(dict.fromkeys(by_key[other] for other in close[:4]))


def _line(error: object) -> str:
    """Returns an error without its excerpt of the query, in one line."""
    message = re.split(r"\n\s*\nLINE \d|\nLINE \d", str(error))[0]
    return KIND.sub("", " ".join(message.split()))
