"""States on the way of long streams, so that a hot product's stock is not folded from its first day each time."""

import hashlib
import inspect
import logging
import sys
from types import ModuleType
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from shared.database import AWAY, Pool
from shared.decider import Decider

log = logging.getLogger(__name__)

EVERY = 500
SAVE = """
INSERT INTO snapshots (stream_id, version, fold, state) VALUES ($1, $2, $3, $4)
ON CONFLICT (stream_id) DO UPDATE SET version = excluded.version, fold = excluded.fold, state = excluded.state
WHERE snapshots.fold <> excluded.fold OR snapshots.version < excluded.version
"""


class Snapshots:
    def __init__(self, pool: Pool, decider: Decider[Any, Any, Any], every: int = EVERY) -> None:
        self._pool = pool
        self._every = every
        states = get_type_hints(decider.evolve)["return"]
        self._types = {state.__name__: TypeAdapter(state) for state in get_args(states) or (states,)}
        self._fold = fold_fingerprint(decider)

    def wanted(self, before: int, after: int) -> bool:
        return after // self._every > before // self._every

    async def load(self, stream_id: str) -> tuple[Any, int] | None:
        row = await self._pool.fetchrow(
            "SELECT version, state FROM snapshots WHERE stream_id = $1 AND fold = $2", stream_id, self._fold
        )
        if row is None:
            return None
        name, _, state = row["state"].partition(b"\n")
        return self._types[name.decode()].validate_json(state), row["version"]

    async def save(self, stream_id: str, state: Any, version: int) -> None:
        """An older state never replaces a newer one of the same fold. Failing costs time later, nothing else."""
        name = type(state).__name__
        try:
            await self._pool.execute(
                SAVE, stream_id, version, self._fold, name.encode() + b"\n" + self._types[name].dump_json(state)
            )
        except AWAY as away:
            log.warning("a snapshot was not saved", extra={"stream": stream_id, "error": repr(away)})


def fold_fingerprint(decider: Decider[Any, Any, Any]) -> str:
    """Of the code that folds: the module of `evolve` and all of ours that it leads to. Another fold ignores our
    snapshots.
    """
    sources = sorted(map(inspect.getsource, _leads_to(sys.modules[decider.evolve.__module__])))
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
