"""Why a stream is as it is: the chain of causes back to the first request, and all that came of these requests."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from services.replay.related import Happened, in_order, order_of, story_of_order, told_by
from services.replay.rolls import Rolls, category_of, key_of
from shared.envelope import Recorded, from_millis
from shared.store import EVENT_COLUMNS

OF_OUR_OWN = ("service:", "system:")
"""Actors that act because of an event; all others act because they want to."""
SLACK = timedelta(minutes=1)
CAUSE = f"SELECT {EVENT_COLUMNS} FROM events WHERE event_id = $1"


@dataclass
class Node:
    happened: Happened
    is_asked_for: bool
    """On the way from the first request to the event in question."""
    effects: "list[Node]" = field(default_factory=list)


@dataclass(frozen=True)
class Root:
    """What it began with: a request, or (where `actor` is one of our own) an event that nobody can find."""

    cause: str
    actor: str
    correlation_id: str
    time: datetime
    nodes: list[Node]


@dataclass(frozen=True)
class Causes:
    chain: list[Happened]
    """The event in question, its cause, the cause of that, and so on."""
    roots: list[Root]
    """Of the chain, and of everything else in its stream; with all that came of them."""
    story: list[Happened]
    order_id: str | None


async def causes(rolls: Rolls, asked: Happened) -> Causes:
    order_id = await _order_of(rolls, asked)
    story = await _story(rolls, asked, order_id)
    by_id = {it.recorded.event_id: it for it in story}
    chain = [by_id.setdefault(asked.recorded.event_id, asked)]
    while cause := await _cause(rolls, chain[-1].recorded, by_id):
        if cause in chain:
            break  # nothing of ours can have written it
        chain.append(by_id.setdefault(cause.recorded.event_id, cause))
    told = in_order(list(by_id.values()))
    return Causes(chain, _roots(told, chain, asked.recorded.stream_id), told, order_id)


async def _order_of(rolls: Rolls, asked: Happened) -> str | None:
    if asked.category == "stock":  # it has had many: the one in question
        order_id: str | None = getattr(asked.event, "order_id", None)
        return order_id
    return await order_of(rolls, asked.category, key_of(asked.recorded.stream_id))


async def _story(rolls: Rolls, asked: Happened, order_id: str | None) -> list[Happened]:
    story = await story_of_order(rolls, order_id) if order_id else []
    if story or asked.category == "stock":
        return story
    return await told_by(rolls, asked.category, key_of(asked.recorded.stream_id))


async def _cause(rolls: Rolls, recorded: Recorded, known: dict[str, Happened]) -> Happened | None:
    if not recorded.actor.startswith(OF_OUR_OWN) or not recorded.causation_id:
        return None
    return known.get(recorded.causation_id) or await find(rolls, recorded.causation_id)


async def find(rolls: Rolls, event_id: str) -> Happened | None:
    """There is no index by event id, but the id says when it was made, and by time there is one."""
    try:
        about = made_at(event_id)
    except ValueError:
        return None
    # Where the clock was not right when it was made, or its time was, all are looked through.
    for when, span in ((" AND time BETWEEN $2 AND $3", (about - SLACK, about + SLACK)), ("", ())):
        for category, roll in rolls.items():
            if row := await roll.pool.fetchrow(CAUSE + when, UUID(event_id), *span):
                recorded = Recorded(*row)
                return Happened(category, recorded, await roll.memory.decode(recorded.value))
    return None


def made_at(identifier: str) -> datetime:
    """A UUIDv7 begins with the unix milliseconds of its making."""
    uuid = UUID(identifier)
    if uuid.version != 7:
        raise ValueError(f"{identifier} does not say when it was made")
    return from_millis(uuid.int >> 80)


def _roots(told: Sequence[Happened], chain: Sequence[Happened], stream_id: str) -> list[Root]:
    on_the_way = {it.recorded.event_id for it in chain}
    nodes = {it.recorded.event_id: Node(it, it.recorded.event_id in on_the_way) for it in told}
    roots: dict[str, Root] = {}
    for node in nodes.values():
        recorded = node.happened.recorded
        if cause := nodes.get(recorded.causation_id):
            cause.effects.append(node)
        else:
            begun = _begun(recorded)
            roots.setdefault(begun.cause or recorded.event_id, begun).nodes.append(node)
    of_stock = category_of(stream_id) == "stock"  # its other events are other stories
    return [
        root
        for root in roots.values()
        if any(
            node.is_asked_for or (not of_stock and node.happened.recorded.stream_id == stream_id)
            for node in _all(root.nodes)
        )
    ]


def _begun(recorded: Recorded) -> Root:
    try:
        time = made_at(recorded.causation_id)
    except ValueError:
        time = recorded.time
    return Root(recorded.causation_id, recorded.actor, recorded.correlation_id, time, [])


def _all(nodes: Sequence[Node]) -> list[Node]:
    waiting, found = list(nodes), []
    while waiting:
        found.append(node := waiting.pop())
        waiting += node.effects
    return found
