"""The rows of two tables of one view, compared: found over whole tables, and looked at again when both stand still."""

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from services.replay.beside import LONG, Beside

Kind = Literal["changed", "missing", "extra", "behind", "ahead"]
"""What the live row was: other than its events make it, not there, of no events, older, or newer than these."""
SHOWN = 20


@dataclass(frozen=True)
class Difference:
    key: str
    kind: Kind
    fields: dict[str, tuple[Any, Any]]
    """What they were, and what they are now; not listed where one side has no row at all."""


@dataclass(frozen=True)
class Comparison:
    rows: int
    counts: dict[str, int]
    """By kind."""
    shown: list[Difference]
    """The first of them."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


async def note_suspects(place: Beside) -> None:
    """Every key whose rows differ. The live view moves on meanwhile: some of them are only on their way."""
    key = place.target.view.key
    await place.connection.execute("DROP TABLE IF EXISTS pg_temp.suspects")
    await place.connection.execute(
        f"CREATE TEMP TABLE suspects AS SELECT {key} AS key FROM {_both(place)} WHERE {_distinct(place)}", timeout=LONG
    )


async def compare_suspects(place: Beside) -> Comparison:
    """In a transaction in which neither side moves."""
    view, connection = place.target.view, place.connection
    found = (
        f"SELECT {view.key} AS key, to_jsonb(live) AS was, to_jsonb(built) AS now_is, CASE"
        f" WHEN live.{view.key} IS NULL THEN 'missing' WHEN built.{view.key} IS NULL THEN 'extra'"
        " WHEN live.version < built.version THEN 'behind' WHEN live.version > built.version THEN 'ahead'"
        f" ELSE 'changed' END AS kind FROM {_both(place, 'JOIN pg_temp.suspects ON key = ' + view.key)}"
        f" WHERE {_distinct(place)}"
    )
    counts = await connection.fetch(f"SELECT kind, count(*) FROM ({found}) GROUP BY kind ORDER BY kind", timeout=LONG)
    shown = await connection.fetch(f"{found} ORDER BY key LIMIT {SHOWN}", timeout=LONG)
    rows = await connection.fetchval(f'SELECT count(*) FROM "{place.schema}"."{place.table}"', timeout=LONG)
    return Comparison(rows, dict(map(tuple, counts)), [_difference(*row) for row in shown])


def _both(place: Beside, more: str = "") -> str:
    key = place.target.view.key
    return (
        f'"{place.live}"."{place.table}" live FULL JOIN "{place.schema}"."{place.table}" built USING ({key}) {more}'
    ).strip()


def _distinct(place: Beside) -> str:
    live, built = (", ".join(f"{side}.{name}" for name in place.target.view.names) for side in ("live", "built"))
    return f"({live}) IS DISTINCT FROM ({built})"


def _difference(key: str, was: str | None, now_is: str | None, kind: Kind) -> Difference:
    before, after = (orjson.loads(side) if side else {} for side in (was, now_is))
    fields = {name: (before[name], after[name]) for name in before if after and before[name] != after[name]}
    return Difference(key, kind, fields)
