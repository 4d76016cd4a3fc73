"""States on the way of long streams, so that a hot product's stock is not folded from its first day each time.

The latest is there for who decides, and milestones for who looks back: any moment of a stream is near one of them.
"""

import hashlib
import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from types import ModuleType
from typing import Any, get_args, get_type_hints

import orjson

from shared.codec import Convert, from_record, to_record
from shared.database import AWAY, Connection, Pool
from shared.decider import Decider

log = logging.getLogger(__name__)

FORMAT = "records as JSON objects"
"""Part of what names a fold: who would write a state otherwise is another one."""
EVERY = 500
MILESTONES = 32
"""At most so many of a stream, and one more: where there would be more, every other one goes."""

SAVE = """
INSERT INTO snapshots (stream_id, version, fold, state) VALUES ($1, $2, $3, $4)
ON CONFLICT (stream_id) DO UPDATE SET version = excluded.version, fold = excluded.fold, state = excluded.state
WHERE snapshots.fold <> excluded.fold OR snapshots.version < excluded.version
"""
# `until` is the latest time of all events so far, not that of the last one: the clocks of two servers may disagree.
MARK = """
WITH last AS (
    SELECT version, until FROM milestones WHERE stream_id = $1 AND fold = $3 AND version <= $2
    UNION ALL SELECT 0, NULL ORDER BY version DESC LIMIT 1)
INSERT INTO milestones (stream_id, version, fold, until, state)
SELECT $1, $2, $3, greatest(last.until, max(time)), $4 FROM last, events
WHERE stream_id = $1 AND events.version > last.version AND events.version <= $2 AND $2 / $5 > last.version / $5
GROUP BY last.until
ON CONFLICT (stream_id, version) DO UPDATE SET fold = excluded.fold, until = excluded.until, state = excluded.state
WHERE milestones.fold <> excluded.fold
"""
THIN = """
DELETE FROM milestones WHERE stream_id = $1 AND version NOT IN (
    SELECT min(version) FROM milestones WHERE stream_id = $1 AND fold = $2 GROUP BY version / $3)
"""
NEAREST = """
SELECT version, state FROM milestones
WHERE stream_id = $1 AND fold = $2 AND version <= coalesce($3, version) AND until <= coalesce($4, until)
ORDER BY version DESC LIMIT 1
"""


class Snapshots:
    def __init__(self, pool: Pool, decider: Decider[Any, Any, Any], every: int = EVERY) -> None:
        self._pool = pool
        self._every = every
        states = get_type_hints(decider.evolve)["return"]
        self._types = {state.__name__: state for state in get_args(states) or (states,)}
        self._fold = fold_fingerprint(decider)

    def wanted(self, before: int, after: int) -> bool:
        return after // self._every > before // self._every

    async def load(self, stream_ids: Sequence[str], source: "Connection | None" = None) -> dict[str, tuple[Any, int]]:
        """State and version, of those of the streams that have one."""
        rows = await (source or self._pool).fetch(
            "SELECT stream_id, version, state FROM snapshots WHERE stream_id = ANY($1::text[]) AND fold = $2",
            stream_ids,
            self._fold,
        )
        return {row["stream_id"]: (self._unpacked(row["state"]), row["version"]) for row in rows}

    async def nearest(self, stream_id: str, version: int | None, at: datetime | None) -> tuple[Any, int] | None:
        """The last milestone that is not past the version, and has nothing in it from after the moment."""
        row = await self._pool.fetchrow(NEAREST, stream_id, self._fold, version, at)
        return (self._unpacked(row["state"]), row["version"]) if row else None

    async def save(self, stream_id: str, state: Any, version: int) -> None:
        """An older state never replaces a newer one of the same fold. Failing costs time later, nothing else."""
        packed, spacing = self._packed(state), self._spacing(version)
        try:
            await self._pool.execute(SAVE, stream_id, version, self._fold, packed)
            if await self._pool.execute(MARK, stream_id, version, self._fold, packed, spacing) != "INSERT 0 0":
                await self._pool.execute(THIN, stream_id, self._fold, spacing)
        except AWAY as away:
            log.warning("a snapshot was not saved", extra={"stream": stream_id, "error": repr(away)})

    def _spacing(self, version: int) -> int:
        spacing = self._every
        while version > spacing * MILESTONES:
            spacing *= 2
        return spacing

    def _packed(self, state: Any) -> bytes:
        name = type(state).__name__
        return name.encode() + b"\n" + orjson.dumps(_apart(self._types[name])(state))

    def _unpacked(self, packed: bytes) -> Any:
        name, _, state = packed.partition(b"\n")
        return _together(self._types[name.decode()])(orjson.loads(state))


# Made when they are needed: most streams are too short for a snapshot.
@cache
def _apart(state: type) -> Convert:
    return to_record(state)


@cache
def _together(state: type) -> Convert:
    return from_record(state)


def fold_fingerprint(decider: Decider[Any, Any, Any]) -> str:
    """Of the code that folds: the module of `evolve` and all of ours that it leads to. Another fold ignores our
    snapshots.
    """
    return fingerprint(decider.evolve)


def fingerprint(code: Callable[..., Any]) -> str:
    """Of the module of a function, and all of ours that it leads to."""
    sources = sorted(map(inspect.getsource, _leads_to(sys.modules[code.__module__])))
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()[:32]


def _leads_to(start: ModuleType) -> set[ModuleType]:
    ours = {start.__name__.partition(".")[0], __name__.partition(".")[0]}
    found: set[ModuleType] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            used = {getattr(value, "__module__", None) for value in vars(module).values()}
            used |= {value.__name__ for value in vars(module).values() if inspect.ismodule(value)}
            waiting += [sys.modules[n] for n in used if n in sys.modules and str(n).partition(".")[0] in ours]
    return found
