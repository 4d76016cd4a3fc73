"""Reads the history of a stream: its events with what each changed, alone or among related events of all services."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from services.operations.history.changes import Change, read_steps
from services.operations.history.sources import story_sources
from services.operations.reading.stores import Stores, category_of, key_of, store_of
from services.shop.order_story import StoryEvent, find_order_id, read_order_story, read_stream_events, sort_by_cause
from shared.store.time_travel import AsOf


class HistoryEntry(NamedTuple):
    """An event with the service it belongs to and what it changed in its stream."""

    happened: StoryEvent
    service: str
    changes: list[Change]


async def read_history(stores: Stores, stream_id: str, latest: int, last: int | None) -> AsyncIterator[HistoryEntry]:
    """Yields the events of a stream up to version `latest`; all of them, or the `last` few."""
    store = store_of(stores, stream_id)
    start = await store.past.state(stream_id, AsOf(max(0, latest - last) if last else 0))
    async for step in read_steps(store, start, latest):
        event = StoryEvent(store.decider.category, step.recorded, step.event)
        yield HistoryEntry(event, store.service, step.changes)


async def read_related_history(stores: Stores, stream_id: str, latest: int, last: int) -> list[HistoryEntry]:
    """Returns the events of every order that a stream belongs to; a product gives the orders its `last` events name."""
    sources, category = story_sources(stores), category_of(stream_id)
    if category == "stock":
        store = store_of(stores, stream_id)
        recent = await store.events.history(stream_id, after=max(0, latest - last))
        own = [StoryEvent(category, it, await store.decoder.decode(it.value)) for it in recent]
        order_ids = list(dict.fromkeys(it.event.order_id for it in own if hasattr(it.event, "order_id")))
    else:
        own = await read_stream_events(sources, category, key_of(stream_id))
        order_id = await find_order_id(sources, category, key_of(stream_id))
        order_ids = [order_id] if order_id else []
    stories = [own, *[await read_order_story(sources, order_id) for order_id in order_ids]]
    events = {it.recorded.event_id: it for story in stories for it in story}
    changes = await _changes_by_event(stores, list(events.values()))
    return [
        HistoryEntry(it, store_of(stores, it.recorded.stream_id).service, changes[it.recorded.event_id])
        for it in sort_by_cause(list(events.values()))
    ]


async def _changes_by_event(stores: Stores, events: Sequence[StoryEvent]) -> dict[str, list[Change]]:
    """Returns what each event changed, by event id; each stream is folded from the first of its events to the last."""
    versions: dict[str, list[int]] = {}
    for it in events:
        versions.setdefault(it.recorded.stream_id, []).append(it.recorded.version)
    wanted = {it.recorded.event_id for it in events}
    found: dict[str, list[Change]] = {}
    for stream_id, of_stream in versions.items():
        store = store_of(stores, stream_id)
        start = await store.past.state(stream_id, AsOf(min(of_stream) - 1))
        async for step in read_steps(store, start, max(of_stream)):
            if step.recorded.event_id in wanted:
                found[step.recorded.event_id] = step.changes
    return found
