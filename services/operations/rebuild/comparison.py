"""Compares the rows of a live view with those of its shadow.

Whole tables are searched for differences while both change. Those rows are compared again in the swap, when both are
locked.
"""

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from services.operations.rebuild.shadow_view import TABLE_SECONDS, ShadowView

Kind = Literal["changed", "missing", "extra", "behind", "ahead"]
"""The ways a live row can differ: other values, no row, a row without events, an older version, a newer one."""
DIFFERENCES_SHOWN = 20


@dataclass(frozen=True)
class RowDifference:
    key: str
    kind: Kind
    fields: dict[str, tuple[Any, Any]]
    """Values of the live row and of the rebuilt one, by field; empty where one of them has no row."""


@dataclass(frozen=True)
class ViewComparison:
    rows: int
    counts: dict[str, int]
    """The number of differences by kind."""
    shown: list[RowDifference]
    """The first differences by key."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


async def note_suspects(shadow: ShadowView) -> None:
    """Notes every key whose rows differ. The live view moves on meanwhile, so some of them will agree later."""
    key = shadow.target.view.key
    await shadow.connection.execute("DROP TABLE IF EXISTS pg_temp.suspects")
    await shadow.connection.execute(
        f"CREATE TEMP TABLE suspects AS SELECT {key} AS key FROM {_both(shadow)} WHERE {_differ(shadow)}",
        timeout=TABLE_SECONDS,
    )


async def compare_suspects(shadow: ShadowView) -> ViewComparison:
    """Compares the noted rows; call it in a transaction in which neither side moves."""
    view, connection = shadow.target.view, shadow.connection
    found = (
        f"SELECT {view.key} AS key, to_jsonb(live) AS was, to_jsonb(built) AS now_is, CASE"
        f" WHEN live.{view.key} IS NULL THEN 'missing' WHEN built.{view.key} IS NULL THEN 'extra'"
        " WHEN live.version < built.version THEN 'behind' WHEN live.version > built.version THEN 'ahead'"
        f" ELSE 'changed' END AS kind FROM {_both(shadow, 'JOIN pg_temp.suspects ON key = ' + view.key)}"
        f" WHERE {_differ(shadow)}"
    )
    counts = await connection.fetch(
        f"SELECT kind, count(*) FROM ({found}) GROUP BY kind ORDER BY kind", timeout=TABLE_SECONDS
    )
    shown = await connection.fetch(f"{found} ORDER BY key LIMIT {DIFFERENCES_SHOWN}", timeout=TABLE_SECONDS)
    rows = await shadow.count_rows()
    return ViewComparison(rows, dict(map(tuple, counts)), [_difference(*row) for row in shown])


def _both(shadow: ShadowView, more: str = "") -> str:
    key = shadow.target.view.key
    return (
        f'"{shadow.live}"."{shadow.table}" live FULL JOIN "{shadow.schema}"."{shadow.table}" built USING ({key}) {more}'
    ).strip()


def _differ(shadow: ShadowView) -> str:
    live, built = (", ".join(f"{side}.{name}" for name in shadow.target.view.names) for side in ("live", "built"))
    return f"({live}) IS DISTINCT FROM ({built})"


def _difference(key: str, was: str | None, now_is: str | None, kind: Kind) -> RowDifference:
    before, after = (orjson.loads(side) if side else {} for side in (was, now_is))
    fields = {name: (before[name], after[name]) for name in before if after and before[name] != after[name]}
    return RowDifference(key, kind, fields)
