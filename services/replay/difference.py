"""What differs between two portraits, field by field, and which event of a stream made the difference."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.replay.portrait import Portrait, of_state
from services.replay.rolls import Roll
from shared.envelope import Recorded
from shared.handler import Handled

CHUNK = 2000


class Change(NamedTuple):
    field: str
    """A path: `lines.MUG-350.quantity`."""
    before: Any
    """None where there was nothing."""
    after: Any


class Step(NamedTuple):
    """An event, and what it changed."""

    recorded: Recorded
    event: Any
    changes: list[Change]
    state: Any
    """After it."""


@dataclass
class Traced:
    """A difference between two moments, and who made it."""

    change: Change
    last: Recorded | None = None
    """The event that made it so."""
    events: int = 0
    """How many have touched the field in between."""


@dataclass(frozen=True)
class Difference:
    before: int
    after: int
    """The versions that are compared."""
    changes: list[Traced] = field(default_factory=list)


def between(before: Portrait, after: Portrait, path: str = "") -> Iterator[Change]:
    """What came or went as a whole is one change, not one for each of its fields."""
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from between(old, new, f"{path}{name}.")
        elif (old := _or_nothing(old)) != (new := _or_nothing(new)):
            yield Change(f"{path}{name}", old, new)


async def steps(roll: Roll, start: Handled[Any, Any], up_to: int) -> AsyncIterator[Step]:
    """The events after `start`, one by one, each with what it changed."""
    decider, state, version = roll.decider, start.state, start.version
    while version < up_to:
        found = await roll.store.history(start.stream_id, after=version, version=up_to, limit=CHUNK)
        for recorded in found:
            event = await roll.memory.decode(recorded.value)
            order_id = getattr(event, "order_id", "") if decider.category == "stock" else None
            before, state = state, decider.evolve(state, event)
            was, is_now = of_state(before, decider.initial, order_id), of_state(state, decider.initial, order_id)
            yield Step(recorded, event, list(between(was, is_now)), state)
        version += len(found)
        if not found:
            return


async def difference(roll: Roll, start: Handled[Any, Any], end: Handled[Any, Any]) -> Difference:
    """What is not as it was. A field that was changed and changed back is as it was."""
    initial = roll.decider.initial
    net = [Traced(c) for c in between(of_state(start.state, initial), of_state(end.state, initial))]
    concerned: dict[str, list[Traced]] = {}
    for traced in net:
        for path in _and_above(traced.change.field):
            concerned.setdefault(path, []).append(traced)
    exactly = {traced.change.field: [traced] for traced in net}
    async for step in steps(roll, start, end.version):
        touched = {id(traced): traced for change in step.changes for traced in _found(change, concerned, exactly)}
        for traced in touched.values():
            traced.last = step.recorded
            traced.events += 1
    return Difference(start.version, end.version, net)


def _found(change: Change, concerned: dict[str, list[Traced]], exactly: dict[str, list[Traced]]) -> Iterator[Traced]:
    """Of the differences, the field itself, what is within it, and what it is within."""
    yield from concerned.get(change.field, ())
    for above in _and_above(change.field)[1:]:
        yield from exactly.get(above, ())


def _and_above(path: str) -> list[str]:
    """`a.b.c` -> `a.b.c`, `a.b`, `a`."""
    names = path.split(".")
    return [".".join(names[:n]) for n in range(len(names), 0, -1)]


def _or_nothing(value: Any) -> Any:
    return None if value in ({}, []) else value
