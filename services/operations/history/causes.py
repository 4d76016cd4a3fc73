"""Finds why a stream is as it is: the chain of causes back to the first request, and all effects of that request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from services.operations.history.sources import story_sources
from services.operations.reading.stores import Stores, category_of, key_of
from services.shop.order_story import StoryEvent, find_order_id, read_order_story, read_stream_events, sort_by_cause
from shared.envelope import Recorded, from_millis
from shared.store.event_store import EVENT_COLUMNS

REACTING_ACTORS = ("service:", "system:")
"""Beginnings of the names of actors that react to events. All others act by request."""
CLOCK_SKEW = timedelta(minutes=1)
EVENT_BY_ID = f"SELECT {EVENT_COLUMNS} FROM events WHERE event_id = $1"


@dataclass
class CauseNode:
    """An event in the tree of causes, above the events it led to."""

    happened: StoryEvent
    is_in_chain: bool
    """Whether the event lies between the first request and the event in question."""
    effects: "list[CauseNode]" = field(default_factory=list)

    @property
    def is_reaction(self) -> bool:
        """True if a service recorded it because of another event, false if somebody requested it."""
        return _is_reaction(self.happened.recorded)


@dataclass(frozen=True)
class Root:
    """The request that a tree of causes begins with, or an event that no store holds."""

    cause: str
    actor: str
    correlation_id: str
    time: datetime
    nodes: list[CauseNode]

    @property
    def is_request(self) -> bool:
        return not self.actor.startswith(REACTING_ACTORS)


@dataclass(frozen=True)
class Causes:
    """The answer to `till why`."""

    chain: list[StoryEvent]
    """The event in question, its cause, the cause of that, and so on."""
    roots: list[Root]
    """The requests behind the chain and behind the rest of its stream, with all their effects."""
    story: list[StoryEvent]
    order_id: str | None


async def find_causes(stores: Stores, event: StoryEvent) -> Causes:
    """Follows the causes of an event through all services."""
    order_id = await _order_of(stores, event)
    by_id = {it.recorded.event_id: it for it in await _read_story(stores, event, order_id)}
    chain = [by_id.setdefault(event.recorded.event_id, event)]
    while cause := await _cause(stores, chain[-1].recorded, by_id):
        if cause in chain:
            break  # a cycle: no service of the shop records one
        chain.append(by_id.setdefault(cause.recorded.event_id, cause))
    story = sort_by_cause(list(by_id.values()))
    return Causes(chain, _roots(story, chain, event.recorded.stream_id), story, order_id)


async def _order_of(stores: Stores, event: StoryEvent) -> str | None:
    if event.category == "stock":  # a product has many orders: only the event says which one it was for
        order_id: str | None = getattr(event.event, "order_id", None)
        return order_id
    return await find_order_id(story_sources(stores), event.category, key_of(event.recorded.stream_id))


async def _read_story(stores: Stores, event: StoryEvent, order_id: str | None) -> list[StoryEvent]:
    sources = story_sources(stores)
    story = await read_order_story(sources, order_id) if order_id else []
    if story or event.category == "stock":
        return story
    return await read_stream_events(sources, event.category, key_of(event.recorded.stream_id))


async def _cause(stores: Stores, recorded: Recorded, story: dict[str, StoryEvent]) -> StoryEvent | None:
    if not _is_reaction(recorded) or not recorded.causation_id:
        return None
    return story.get(recorded.causation_id) or await find_event(stores, recorded.causation_id)


def _is_reaction(recorded: Recorded) -> bool:
    return recorded.actor.startswith(REACTING_ACTORS)


async def find_event(stores: Stores, event_id: str) -> StoryEvent | None:
    """Finds an event by its id in any store.

    Event ids have no index. But a UUIDv7 holds the time of its creation, and times have one.
    """
    try:
        about = created_at(event_id)
    except ValueError:
        return None
    # If that finds nothing, a clock was wrong: search all of history.
    spans = ((" AND time BETWEEN $2 AND $3", (about - CLOCK_SKEW, about + CLOCK_SKEW)), ("", ()))
    for condition, span in spans:
        for store in stores.values():
            if row := await store.pool.fetchrow(EVENT_BY_ID + condition, UUID(event_id), *span):
                recorded = Recorded(*row)
                return StoryEvent(store.decider.category, recorded, await store.decoder.decode(recorded.value))
    return None


def created_at(identifier: str) -> datetime:
    """Reads the time out of a UUIDv7, which begins with unix milliseconds."""
    uuid = UUID(identifier)
    if uuid.version != 7:
        raise ValueError(f"{identifier} is not a UUIDv7, so it holds no time")
    return from_millis(uuid.int >> 80)


def _roots(story: Sequence[StoryEvent], chain: Sequence[StoryEvent], stream_id: str) -> list[Root]:
    in_chain = {it.recorded.event_id for it in chain}
    nodes = {it.recorded.event_id: CauseNode(it, it.recorded.event_id in in_chain) for it in story}
    roots: dict[str, Root] = {}
    for node in nodes.values():
        recorded = node.happened.recorded
        if cause := nodes.get(recorded.causation_id):
            cause.effects.append(node)
        else:
            root = _new_root(recorded)
            roots.setdefault(root.cause or recorded.event_id, root).nodes.append(node)
    is_stock = category_of(stream_id) == "stock"  # other events of a product belong to other orders
    return [
        root
        for root in roots.values()
        if any(
            node.is_in_chain or (not is_stock and node.happened.recorded.stream_id == stream_id)
            for node in _descendants(root.nodes)
        )
    ]


def _new_root(recorded: Recorded) -> Root:
    try:
        time = created_at(recorded.causation_id)
    except ValueError:
        time = recorded.time
    return Root(recorded.causation_id, recorded.actor, recorded.correlation_id, time, [])


def _descendants(nodes: Sequence[CauseNode]) -> list[CauseNode]:
    waiting, found = list(nodes), []
    while waiting:
        found.append(node := waiting.pop())
        waiting += node.effects
    return found
