"""Today's rules against yesterday's commands: every decision is made again, on the state it was made on.

Commands are not stored. They are found again (services/replay/asked), and what cannot be is said. What was refused, or
led to nothing, left no trace and cannot be asked again.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import asyncpg

from services.replay.asked.asking import Decision
from services.replay.targets import Store, Stores, open_stores
from shared.consumer import Incoming
from shared.errors import Refused
from shared.schemas import Schemas
from shared.service import Service
from shared.settings import Settings

CHUNK = 5_000
MANY = 20_000
"""Decisions whose causes are looked up at once: they are found by a walk over the store, not by an index."""
SHOWN = 1_000

READ = """
SELECT stream_id, version, time, actor, causation_id, value FROM events
WHERE (stream_id, version) > ($1, $2) AND ($4::text[] IS NULL OR stream_id = ANY($4))
ORDER BY stream_id, version LIMIT $3
"""
CAUSES = """
SELECT event_id::text, stream_id, version, time, correlation_id, traceparent, value FROM events
WHERE event_id = ANY($1::uuid[])
"""
TOUCHED = "SELECT DISTINCT stream_id FROM events WHERE time BETWEEN coalesce($1, time) AND coalesce($2, time)"

Told = Callable[[str, int], None]


class Asked(Protocol):
    """A module of `services.replay.asked`."""

    def command(self, decision: Decision) -> Any: ...

    def heard(self, message: Incoming, decision: Decision) -> list[tuple[str, Any]]: ...


class Difference(NamedTuple):
    service: str
    stream: str
    version: int
    time: datetime
    command: str
    recorded: str
    decided: str


@dataclass
class Compared:
    service: str
    decisions: int = 0
    same: int = 0
    differences: list[Difference] = field(default_factory=list)
    """The first of them."""
    different: int = 0
    underivable: Counter[str] = field(default_factory=Counter)
    """Decisions whose command cannot be found again, by why."""

    def add(self, difference: Difference) -> None:
        self.different += 1
        if len(self.differences) < SHOWN:
            self.differences.append(difference)


class Window(NamedTuple):
    start: datetime | None = None
    end: datetime | None = None

    def has(self, moment: datetime) -> bool:
        return (self.start is None or moment >= self.start) and (self.end is None or moment <= self.end)


async def compare_decisions(
    settings: Settings,
    services: Sequence[Service],
    names: Sequence[str],
    window: Window = Window(),  # noqa: B008 - it never changes
    told: Told = lambda _, __: None,
    schemas: Schemas | None = None,
) -> list[Compared]:
    async with open_stores(settings, services, schemas) as stores:
        return [await _Again(stores, stores[name], window, told).compare() for name in names]


class _Again:
    def __init__(self, stores: Stores, store: Store, window: Window, told: Told) -> None:
        self._stores = stores
        self._store = store
        self._window = window
        self._told = told
        self._asked: Asked = import_module(f"services.replay.asked.{store.service.name}")
        self._result = Compared(store.service.name)

    async def compare(self) -> Compared:
        waiting: list[Decision] = []
        async for decision in self._decisions():
            self._result.decisions += 1
            command = self._asked.command(decision)
            if command is not None:
                self._decide(decision, command)
                continue
            waiting.append(decision)
            if len(waiting) >= MANY:
                await self._hear(waiting)
                waiting = []
        await self._hear(waiting)
        return self._result

    async def _decisions(self) -> AsyncIterator[Decision]:
        """Each is a run of events that were recorded together, with the state before them."""
        decider, decoder = self._store.service.decider, self._store.memory
        state, current = decider.initial, None
        async for row in self._rows():
            if current is None or not _is_of(row, current):
                if current and self._window.has(current.time):
                    yield current
                if current is None or row["stream_id"] != current.stream_id:
                    state = decider.initial
                stream_id, version, time, actor, causation_id, _ = row
                current = Decision(stream_id, version, time, actor, causation_id, state, [])
            event = await decoder.decode(row["value"])
            current.recorded.append(event)
            if decoder.is_old(row["value"]):
                current.is_old = True
            state = decider.evolve(state, event)
        if current and self._window.has(current.time):
            yield current

    async def _rows(self) -> AsyncIterator[asyncpg.Record]:
        pool, after, version = self._store.pool, "", 2**31 - 1
        streams = None
        if self._window.start or self._window.end:
            streams = [row[0] for row in await pool.fetch(TOUCHED, *self._window, timeout=600)]
        while rows := await pool.fetch(READ, after, version, CHUNK, streams, timeout=600):
            for row in rows:
                yield row
            after, version = rows[-1]["stream_id"], rows[-1]["version"]
            self._told(self._store.service.name, len(rows))

    async def _hear(self, decisions: Sequence[Decision]) -> None:
        """Decide what followed from other services' events."""
        causes = await self._causes([decision.causation_id for decision in decisions])
        for decision in decisions:
            cause = causes.get(decision.causation_id)
            if cause is None:
                kind = type(decision.recorded[0]).__name__
                self._result.underivable[f"{kind} by {decision.actor}: what caused it is in no store"] += 1
                continue
            commands = [c for stream, c in self._asked.heard(cause, decision) if stream == decision.stream_id]
            if commands:
                self._decide(decision, *commands)
            else:
                self._differ(decision, f"(heard {cause.type})", "nothing: it is not reacted to")

    async def _causes(self, ids: Sequence[str]) -> dict[str, Incoming]:
        topics = {topic for reaction in self._store.service.reactions for topic in reaction.topics}
        found: dict[str, Incoming] = {}
        for store in self._stores.values():
            topic = store.service.decider.topic
            if topic in topics:
                wanted = [it for it in ids if len(it) == 36]
                for row in await store.pool.fetch(CAUSES, wanted, timeout=600):
                    found[row["event_id"]] = await self._incoming(row, topic)
        return found

    async def _incoming(self, row: asyncpg.Record, topic: str) -> Incoming:
        """As the service that reacts reads it: by its schema alone."""
        memory = self._store.memory
        event_id, stream_id, version, time, correlation_id, traceparent, value = row
        data = await memory.decode(value)
        kind = memory.type_of(value)
        return Incoming(kind, stream_id, version, data, event_id, time, correlation_id, traceparent, topic, -1, -1)

    def _decide(self, decision: Decision, *commands: Any) -> None:
        decider, state = self._store.service.decider, decision.state
        decided: list[Any] = []
        try:
            for command in commands:
                for event in decider.decide(command, state):
                    state = decider.evolve(state, event)
                    decided.append(event)
        except Refused as refused:
            self._differ(decision, _named(commands), f"refused: {refused.code}")
            return
        except Exception as error:  # whatever today's rules stumble over, it is what they do with it
            self._differ(decision, _named(commands), f"fails: {type(error).__name__}: {error}")
            return
        if _equal(decision, decided):
            self._result.same += 1
        else:
            self._differ(decision, _named(commands), _told_apart(decided, decision.recorded))

    def _differ(self, decision: Decision, command: str, decided: str) -> None:
        recorded = ", ".join(type(event).__name__ for event in decision.recorded)
        self._result.add(
            Difference(
                self._store.service.name,
                decision.stream_id,
                decision.version,
                decision.time,
                command,
                recorded,
                decided,
            )
        )


def _is_of(row: asyncpg.Record, decision: Decision) -> bool:
    """The clock is read once for all events of a decision."""
    known = decision.stream_id, decision.time, decision.actor, decision.causation_id
    return (row["stream_id"], row["time"], row["actor"], row["causation_id"]) == known


def _equal(decision: Decision, decided: Sequence[Any]) -> bool:
    if decision.is_old:
        return [type(event) for event in decided] == [type(event) for event in decision.recorded]
    return list(decided) == list(decision.recorded)


def _named(commands: Sequence[Any]) -> str:
    return ", ".join(type(command).__name__ for command in commands)


def _told_apart(decided: Sequence[Any], recorded: Sequence[Any]) -> str:
    """By their types where these differ, else by the fields that do."""
    names = [type(event).__name__ for event in decided]
    if names != [type(event).__name__ for event in recorded]:
        return ", ".join(names) or "nothing"
    fields = [
        f"{type(ours).__name__}.{name} {getattr(ours, name)!r}, not {getattr(theirs, name)!r}"
        for ours, theirs in zip(decided, recorded, strict=True)
        for name in type(ours).__dataclass_fields__
        if getattr(ours, name) != getattr(theirs, name)
    ]
    return "; ".join(fields)
