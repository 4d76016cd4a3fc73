"""Stored states of long streams, so that they are not folded from their first event each time.

A snapshot is the latest stored state of a stream, one row per stream, for deciding. Milestones are older states at
intervals, for time travel: every moment of a stream is near one. Both are caches and may be deleted at any time.
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

from shared.decider import Decider
from shared.schemas.records import Convert, from_record, to_record
from shared.store.database import CONNECTION_ERRORS, Connection, Pool

log = logging.getLogger(__name__)

FORMAT = "records as JSON objects"
"""Part of the fingerprint of a fold: another serialization format makes old snapshots invalid."""
EVERY = 500
"""Versions between two snapshots."""
MILESTONES = 32
"""Milestones kept per stream (33 at most). Beyond that the spacing doubles and every second one is deleted."""

SAVE = """
INSERT INTO snapshots (stream_id, version, fold, state) VALUES ($1, $2, $3, $4)
ON CONFLICT (stream_id) DO UPDATE SET version = excluded.version, fold = excluded.fold, state = excluded.state
WHERE snapshots.fold <> excluded.fold OR snapshots.version < excluded.version
"""
# `until` is the latest time of all events so far, which need not be that of the last one: clocks may disagree.
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
WHERE stream_id = $1 AND fold = $2 AND version <= $3 AND until <= coalesce($4, until)
ORDER BY version DESC LIMIT 1
"""


class Snapshots:
    """Saves and loads the snapshots and milestones of one kind of stream."""

    def __init__(self, pool: Pool, decider: Decider[Any, Any, Any], every: int = EVERY) -> None:
        self._pool = pool
        self._every = every
        states = get_type_hints(decider.evolve)["return"]
        self._types = {state.__name__: state for state in get_args(states) or (states,)}
        self._fold = fold_fingerprint(decider)

    def due(self, before: int, after: int) -> bool:
        """Tells whether a snapshot is due between the two versions."""
        return after // self._every > before // self._every

    async def load(self, stream_ids: Sequence[str], source: "Connection | None" = None) -> dict[str, tuple[Any, int]]:
        """Returns state and version of each stream that has a snapshot."""
        rows = await (source or self._pool).fetch(
            "SELECT stream_id, version, state FROM snapshots WHERE stream_id = ANY($1::text[]) AND fold = $2",
            stream_ids,
            self._fold,
        )
        return {row["stream_id"]: (self._deserialized(row["state"]), row["version"]) for row in rows}

    async def nearest(self, stream_id: str, version: int, at: datetime | None) -> tuple[Any, int] | None:
        """Returns state and version of the last milestone up to `version` that contains no event after `at`."""
        row = await self._pool.fetchrow(NEAREST, stream_id, self._fold, version, at)
        return (self._deserialized(row["state"]), row["version"]) if row else None

    async def save(self, stream_id: str, state: Any, version: int) -> None:
        """Stores a snapshot, and a milestone if one is due. An older state never replaces a newer one of the same fold.

        A failure is logged only: it costs time later, nothing else.
        """
        packed, spacing = self._serialized(state), self._spacing(version)
        try:
            await self._pool.execute(SAVE, stream_id, version, self._fold, packed)
            if await self._pool.execute(MARK, stream_id, version, self._fold, packed, spacing) != "INSERT 0 0":
                await self._pool.execute(THIN, stream_id, self._fold, spacing)
        except CONNECTION_ERRORS as error:
            log.warning("a snapshot was not saved", extra={"stream": stream_id, "error": repr(error)})

    def _spacing(self, version: int) -> int:
        spacing = self._every
        while version > spacing * MILESTONES:
            spacing *= 2
        return spacing

    def _serialized(self, state: Any) -> bytes:
        name = type(state).__name__
        return name.encode() + b"\n" + orjson.dumps(_serializer(self._types[name])(state))

    def _deserialized(self, packed: bytes) -> Any:
        name, _, state = packed.partition(b"\n")
        return _deserializer(self._types[name.decode()])(orjson.loads(state))


# Compiled on first use: most streams are too short for a snapshot.
@cache
def _serializer(state: type) -> Convert:
    return to_record(state)


@cache
def _deserializer(state: type) -> Convert:
    return from_record(state)


def fold_fingerprint(decider: Decider[Any, Any, Any]) -> str:
    """Identifies the code that folds and the format of states. Snapshots of another fingerprint are replaced."""
    return fingerprint(decider.evolve, FORMAT)


def fingerprint(code: Callable[..., Any], *more: str) -> str:
    """Hashes the source of a function's module and of all our modules that it uses, and the texts in `more`.

    Every change counts, even of a comment: too many refolds are harmless, a state of outdated code is not.
    """
    sources = sorted(map(inspect.getsource, _modules_used_by(sys.modules[code.__module__])))
    return hashlib.sha256("\n".join([*sources, *more]).encode()).hexdigest()[:32]


def _modules_used_by(start: ModuleType) -> set[ModuleType]:
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
