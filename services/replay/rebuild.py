"""Builds a view anew beside the live one, while the shop sells; brings it up to date, compares, and swaps.

Whatever ends it on the way, the live view is untouched, and the next run goes on where this one was.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from services.replay.beside import LONG, Beside, Building, beside, new, offsets_of, old
from services.replay.catching_up import Applied, catch_up
from services.replay.compared import Comparison, note_suspects
from services.replay.folding import SetAside, folded, in_streams, source_of
from services.replay.swapping import swap
from services.replay.targets import Stores, Target, open_stores
from services.replay.topics import begins, ends
from shared.crashpoints import crashpoint
from shared.errors import OperatorError
from shared.refill import open_reader
from shared.schemas import Schemas
from shared.service import Service
from shared.settings import Settings
from shared.snapshots import fingerprint

Source = Literal["store", "kafka"]
SMALL_LAG = 1_000
ROUNDS = 50
WAIT_SECONDS, LOOK_SECONDS = 3.0, 0.05


class NothingThere(Exception):
    """No view was replaced that could come back, or nothing had happened by the moment that was asked for."""


class Progress(NamedTuple):
    view: str
    phase: str
    done: int
    total: int


Report = Callable[[Progress], None]


@dataclass
class Rebuilt:
    view: str
    source: str
    events: int = 0
    resumed: int = 0
    """Of these, from a run before that was interrupted."""
    seconds: float = 0.0
    caught_up: int = 0
    comparison: Comparison | None = None
    in_flight: bool = False
    """The live one had not been told everything yet: what it lacked may have been on its way."""
    aside: list[SetAside] = field(default_factory=list)
    schema: str = ""
    """Where it is, or where the replaced one is kept."""
    rows: int = 0


async def rebuild(
    settings: Settings,
    services: Sequence[Service],
    target: Target,
    source: Source = "store",
    report: Report = lambda _: None,
    schemas: Schemas | None = None,
) -> Rebuilt:
    began = time.monotonic()
    done = Rebuilt(target.name, source, schema=old(target))
    async with open_stores(settings, services, schemas) as stores:
        await _require_live(stores, target)
        memory = stores[target.service.name].memory
        async with (
            beside(settings, target, new(target), memory) as place,
            open_reader(settings, *target.projection.topics) as kafka,
        ):
            building = await _begun(place, kafka, source)
            done.resumed = building.events
            done.events = building.events
            if source == "store" and not building.is_full:
                await _from_store(place, stores, building, done, report)
                await place.is_full()
            await _bring_up_to_date(place, kafka, done, report)
            await place.create_indexes()
            await _finish(place, kafka, stores, done, report)
    done.seconds = time.monotonic() - began
    return done


async def undo(
    settings: Settings,
    services: Sequence[Service],
    target: Target,
    report: Report = lambda _: None,
    schemas: Schemas | None = None,
) -> Rebuilt:
    """Back to the one that was replaced, with what has happened since. To undo that, undo again."""
    began = time.monotonic()
    done = Rebuilt(target.name, "undo", schema=old(target))
    async with open_stores(settings, services, schemas) as stores:
        await _require_live(stores, target)
        if not await _is_there(stores, target, old(target)):
            raise NothingThere(f"No earlier {target.name} is kept: there is nothing to go back to.")
        async with (
            beside(settings, target, old(target), stores[target.service.name].memory) as place,
            open_reader(settings, *target.projection.topics) as kafka,
        ):
            await _bring_up_to_date(place, kafka, done, report)
            await _finish(place, kafka, stores, done, report)
    done.seconds = time.monotonic() - began
    return done


async def rebuild_at(
    settings: Settings,
    services: Sequence[Service],
    target: Target,
    moment: datetime,
    source: Source = "store",
    report: Report = lambda _: None,
    schemas: Schemas | None = None,
) -> Rebuilt:
    """As it was then, in a schema of its own, to be looked at. It replaces nothing."""
    began = time.monotonic()
    schema = f"{target.service.name}__at_{moment.astimezone(UTC):%Y%m%dt%H%M%S}"
    done = Rebuilt(target.name, source, schema=schema)
    async with open_stores(settings, services, schemas) as stores:
        await _require_live(stores, target)
        await _require_a_past(stores, target, moment)
        async with (
            beside(settings, target, schema, stores[target.service.name].memory) as place,
            open_reader(settings, *target.projection.topics) as kafka,
        ):
            building = await place.begin(source, "", await begins(kafka))
            if source == "store":
                await _from_store(place, stores, building, done, report, moment)
            else:
                goal = await ends(kafka)
                _note(done, await catch_up(place, kafka, goal, _counting(done, goal, report), moment))
            await place.create_indexes()
            count = f'SELECT count(*) FROM "{schema}"."{place.table}"'
            done.rows = await place.connection.fetchval(count, timeout=LONG)
    done.seconds = time.monotonic() - began
    return done


async def _require_live(stores: Stores, target: Target) -> None:
    if not await _is_there(stores, target, target.service.name):
        raise OperatorError("No shop has ever run on this database.", "Start one with: till up")


async def _require_a_past(stores: Stores, target: Target, moment: datetime) -> None:
    store, _ = source_of(target, stores)
    first = await store.pool.fetchval("SELECT time FROM events ORDER BY position LIMIT 1")
    if first is None or moment < first:
        begun = f"The first event is of {first:%Y-%m-%d %H:%M:%S} UTC." if first else "There is no event at all."
        raise NothingThere(f"Nothing had happened by then that {target.name} could show. {begun}")


async def _is_there(stores: Stores, target: Target, schema: str) -> bool:
    pool = stores[target.service.name].pool
    found = await pool.fetchval("SELECT to_regclass(format('%I.%I', $1::text, $2::text))", schema, target.view.table)
    return found is not None


async def _begun(place: Beside, kafka: AIOKafkaConsumer, source: Source) -> Building:
    """The build that was interrupted, if it was of this source and by this code; else a new one."""
    fold = fingerprint(place.target.view.change)
    last = await ends(kafka)
    building, offsets = await place.building(), await place.offsets()
    is_same_topic = offsets.keys() == last.keys() and all(offsets[partition] <= last[partition] for partition in last)
    if building and (building.source, building.fold) == (source, fold) and is_same_topic:
        return building
    # The topic's end comes first. All that is before it was committed, so reading the store finds it; all that is
    # after it is read from the topic, and what the store had of it already is known by its version.
    return await place.begin(source, fold, last if source == "store" else await begins(kafka))


async def _from_store(
    place: Beside, stores: Stores, building: Building, done: Rebuilt, report: Report, until: datetime | None = None
) -> None:
    store, rows = source_of(place.target, stores)
    total = await store.pool.fetchval("SELECT count(*) FROM events", timeout=LONG)
    cursor = building.cursor
    async for [batch] in folded(store, [rows], in_streams(store.pool, cursor), until):
        cursor = batch.cursor or cursor
        done.events += batch.events
        done.aside += batch.aside
        await place.add(batch.rows, cursor, done.events)
        # Some of it built: after a death here the next run goes on after the last complete stream.
        crashpoint("partly rebuilt")
        report(Progress(place.target.name, "building", done.events, total))


async def _bring_up_to_date(place: Beside, kafka: AIOKafkaConsumer, done: Rebuilt, report: Report) -> None:
    """Round after round, each shorter than the last, until what is left is small enough to be done in the swap."""
    for _ in range(ROUNDS):
        goal = await ends(kafka)
        _note(done, await catch_up(place, kafka, goal, _counting(done, goal, report)))
        if sum((await ends(kafka)).values()) - sum(goal.values()) <= SMALL_LAG:
            return
    raise OperatorError(
        f"{place.target.name} cannot be caught up with: more is written than this machine can apply beside the shop.",
        "Run it again when there is less to do: it goes on where it was.",
    )


def _counting(done: Rebuilt, goal: dict[TopicPartition, int], report: Report) -> Callable[[int], None]:
    total, reached = sum(goal.values()), 0

    def told(more: int) -> None:
        nonlocal reached
        reached += more
        report(Progress(done.view, "reading the topic", reached, max(total, reached)))

    return told


def _note(done: Rebuilt, applied: Applied) -> None:
    done.caught_up += applied.messages
    done.aside += applied.aside


async def _finish(place: Beside, kafka: AIOKafkaConsumer, stores: Stores, done: Rebuilt, report: Report) -> None:
    await _until_live_is_there(place)
    report(Progress(done.view, "comparing", 0, 0))
    await note_suspects(place)
    behind = await _is_behind(place, stores)
    report(Progress(done.view, "swapping", 0, 0))
    done.comparison, applied = await swap(place, kafka, old(place.target))
    _note(done, applied)
    done.in_flight = behind
    done.rows = done.comparison.rows


async def _until_live_is_there(place: Beside) -> None:
    """What it has not been told yet would look like a difference. Where no shop runs, it will not come."""
    give_up = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < give_up:
        live, built = await offsets_of(place.connection, place.live, place.target.name), await place.offsets()
        if all(live.get(partition, 0) >= offset for partition, offset in built.items()):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _is_behind(place: Beside, stores: Stores) -> bool:
    live, built = await offsets_of(place.connection, place.live, place.target.name), await place.offsets()
    store, _ = source_of(place.target, stores)
    waiting: bool = await store.pool.fetchval("SELECT EXISTS (SELECT FROM outbox)")
    return waiting or any(live.get(partition, 0) < offset for partition, offset in built.items())
