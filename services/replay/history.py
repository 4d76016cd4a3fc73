"""A stream's events with what each changed; alone, or among the events of all services that belong with them."""

from collections.abc import AsyncIterator
from typing import NamedTuple

from services.replay.difference import Change, Step, steps
from services.replay.related import Happened, in_order, order_of, story_of_order, told_by
from services.replay.rolls import Rolls, category_of, key_of
from shared.timetravel import AsOf


class Told(NamedTuple):
    happened: Happened
    service: str
    changes: list[Change]


async def history(rolls: Rolls, stream_id: str, latest: int, last: int | None) -> AsyncIterator[Told]:
    """All of them, or the last few."""
    category = category_of(stream_id)
    roll = rolls[category]
    start = await roll.past.state(stream_id, AsOf(max(0, latest - last) if last else 0))
    async for step in steps(roll, start, latest):
        yield Told(Happened(category, step.recorded, step.event), roll.service, step.changes)


async def related(rolls: Rolls, stream_id: str, latest: int, last: int) -> list[Told]:
    """The events of every order that the stream has to do with. Of a product: those that its last events name."""
    category, key = category_of(stream_id), key_of(stream_id)
    found: dict[str, Happened] = {}
    if category == "stock":
        recent = await rolls[category].store.history(stream_id, after=max(0, latest - last))
        own = [Happened(category, it, await rolls[category].memory.decode(it.value)) for it in recent]
        order_ids = list(dict.fromkeys(it.event.order_id for it in own if hasattr(it.event, "order_id")))
    else:
        own = await told_by(rolls, category, key)
        order_ids = [order_id] if (order_id := await order_of(rolls, category, key)) else []
    for told in (own, *[await story_of_order(rolls, order_id) for order_id in order_ids]):
        found |= {it.recorded.event_id: it for it in told}
    changed = await _changes(rolls, list(found.values()))
    return [
        Told(it, rolls[it.category].service, changed[it.recorded.event_id].changes)
        for it in in_order(list(found.values()))
    ]


async def _changes(rolls: Rolls, told: list[Happened]) -> dict[str, Step]:
    """By event id. A stream is folded from the first of its events that is told to the last."""
    spans: dict[str, list[int]] = {}
    for it in told:
        spans.setdefault(it.recorded.stream_id, []).append(it.recorded.version)
    found: dict[str, Step] = {}
    wanted = {it.recorded.event_id for it in told}
    for stream_id, versions in spans.items():
        roll = rolls[category_of(stream_id)]
        start = await roll.past.state(stream_id, AsOf(min(versions) - 1))
        async for step in steps(roll, start, max(versions)):
            if step.recorded.event_id in wanted:
                found[step.recorded.event_id] = step
    return found
