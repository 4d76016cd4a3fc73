"""The steps of a rebuild: open sources, fold the store, catch up with the topic, compare with the live view, swap."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from aiokafka import TopicPartition

from services.operations.reading.fold import SetAside, fold_streams, read_all_streams
from services.operations.reading.row_builders import RowBuilder, find_source
from services.operations.reading.stores import Store, Stores, no_shop, open_stores
from services.operations.reading.views import Target
from services.operations.rebuild.catch_up import Applied, catch_up
from services.operations.rebuild.comparison import ViewComparison, note_suspects
from services.operations.rebuild.shadow_view import (
    TABLE_SECONDS,
    BuildProgress,
    ShadowView,
    old_schema,
    open_shadow_view,
    read_offsets,
    table_exists,
)
from services.operations.rebuild.swap import swap
from shared.errors import OperatorError
from shared.messaging.topic_reader import TopicReader, open_reader
from shared.recovery.crash_points import crashpoint
from shared.schemas.contract.event_schemas import Schemas
from shared.service import Service
from shared.settings import Settings
from shared.store.snapshots import fingerprint

Source = Literal["store", "kafka"]
SMALL_LAG = 1_000
"""Messages that are few enough to be applied within the swap, during which the live view is locked."""
CATCH_UP_ROUNDS = 50
LIVE_WAIT_SECONDS, LIVE_POLL_SECONDS = 3.0, 0.05


class NothingThere(Exception):
    """Raised when no replaced view is kept that could come back, or nothing had happened by the given moment."""


class Progress(NamedTuple):
    view: str
    phase: str
    done: int
    total: int


Report = Callable[[Progress], None]


@dataclass
class Rebuilt:
    """The outcome of a rebuild, an undo, or a build at a moment."""

    view: str
    source: str
    events: int = 0
    resumed: int = 0
    """The part of `events` that an earlier, interrupted run had applied."""
    seconds: float = 0.0
    caught_up: int = 0
    """Messages applied from the topic."""
    comparison: ViewComparison | None = None
    in_flight: bool = False
    """The live view had not consumed everything yet, so rows it lacked may only have been late."""
    aside: list[SetAside] = field(default_factory=list)
    schema: str = ""
    """The schema that holds the view as of a moment, or that keeps the replaced view."""
    rows: int = 0


@dataclass(frozen=True)
class ViewSources:
    """The view to rebuild, and the opened stores that its events come from."""

    settings: Settings
    services: Sequence[Service]
    target: Target
    stores: Stores

    @property
    def source(self) -> tuple[Store, RowBuilder]:
        return find_source(self.target, self.services, self.stores)

    async def has_table(self, schema: str) -> bool:
        return await table_exists(self.stores[self.target.service.name].pool, schema, self.target.view.table)

    async def require_live_view(self) -> None:
        if not await self.has_table(self.target.service.name):
            raise no_shop()

    async def require_replaced_view(self) -> None:
        if not await self.has_table(old_schema(self.target)):
            raise NothingThere(f"No earlier {self.target.name} is kept: there is nothing to go back to.")

    async def require_events_before(self, moment: datetime) -> None:
        store, _ = self.source
        first = await store.pool.fetchval("SELECT time FROM events ORDER BY position LIMIT 1")
        if first is None or moment < first:
            begun = f"The first event is of {first:%Y-%m-%d %H:%M:%S} UTC." if first else "There is no event yet."
            raise NothingThere(f"{self.target.name} was still empty then. {begun}")

    @asynccontextmanager
    async def open_build(self, schema: str, done: Rebuilt, report: Report) -> "AsyncIterator[Build]":
        decoder = self.stores[self.target.service.name].decoder
        async with (
            open_shadow_view(self.settings, self.target, schema, decoder) as shadow,
            open_reader(self.settings, *self.target.projection.topics) as topic,
        ):
            yield Build(self, shadow, topic, done, report)


@asynccontextmanager
async def open_sources(
    settings: Settings, services: Sequence[Service], target: Target, done: Rebuilt, schemas: Schemas | None
) -> AsyncIterator[ViewSources]:
    """Opens the stores, and notes in `done` how long they were open."""
    began = time.monotonic()
    deciders = {service.name: service.decider for service in services}
    async with open_stores(settings.database_url.get_secret_value(), deciders, schemas, settings) as stores:
        sources = ViewSources(settings, services, target, stores)
        await sources.require_live_view()
        yield sources
    done.seconds = time.monotonic() - began


@dataclass(frozen=True)
class Build:
    """A shadow view with all that it is built from, and the steps to build it."""

    sources: ViewSources
    shadow: ShadowView
    topic: TopicReader
    done: Rebuilt
    report: Report

    async def resume_or_begin(self, source: Source) -> BuildProgress:
        """Continues an interrupted build if it has the same source and the same code; else begins a new one."""
        fold = fingerprint(self.shadow.target.view.change)
        last = await self.topic.ends()
        progress, offsets = await self.shadow.progress(), await self.shadow.offsets()
        is_same_topic = offsets.keys() == last.keys() and all(offsets[it] <= last[it] for it in last)
        if progress and (progress.source, progress.fold) == (source, fold) and is_same_topic:
            return progress
        # The topic's end is taken first. All messages before it were committed, so reading the store finds them; all
        # after it are read from the topic, and those the store had already are recognised by their version.
        return await self.shadow.begin(source, fold, last if source == "store" else await self.topic.beginnings())

    async def fold_store(self, cursor: str = "", until: datetime | None = None) -> None:
        """Fills the shadow from the store, beginning after the stream `cursor`."""
        store, builder = self.sources.source
        total = await store.pool.fetchval("SELECT count(*) FROM events", timeout=TABLE_SECONDS)
        async for [batch] in fold_streams(store, [builder], read_all_streams(store.pool, cursor), until):
            cursor = batch.cursor or cursor
            self.done.events += batch.events
            self.done.aside += batch.aside
            await self.shadow.add(batch.rows, cursor, self.done.events)
            # Partly built: after a crash here the next run continues after the last complete stream.
            crashpoint("partly rebuilt")
            self.report(Progress(self.done.view, "building", self.done.events, total))

    async def catch_up_with_live(self) -> None:
        """Catches up in rounds, each shorter than the last, until the rest is small enough for the swap."""
        for _ in range(CATCH_UP_ROUNDS):
            goal = await self.topic.ends()
            await self.catch_up_to(goal)
            if sum((await self.topic.ends()).values()) - sum(goal.values()) <= SMALL_LAG:
                return
        raise OperatorError(
            f"The rebuild of {self.done.view} cannot catch up: the shop writes faster than this machine can apply.",
            "Run it again when there is less traffic; it continues where it stopped.",
        )

    async def catch_up_to(self, goal: Mapping[TopicPartition, int], until: datetime | None = None) -> None:
        total, reached = sum(goal.values()), 0

        def count(applied: int) -> None:
            nonlocal reached
            reached += applied
            self.report(Progress(self.done.view, "reading the topic", reached, max(total, reached)))

        self._note(await catch_up(self.shadow, self.topic, goal, count, until))

    async def compare_and_swap(self) -> None:
        await self._wait_for_live()
        self.report(Progress(self.done.view, "comparing", 0, 0))
        await note_suspects(self.shadow)
        self.done.in_flight = await self._is_live_behind()
        self.report(Progress(self.done.view, "swapping", 0, 0))
        self.done.comparison, applied = await swap(self.shadow, self.topic, old_schema(self.shadow.target))
        self._note(applied)
        self.done.rows = self.done.comparison.rows

    def _note(self, applied: Applied) -> None:
        self.done.caught_up += applied.messages
        self.done.aside += applied.aside

    async def _wait_for_live(self) -> None:
        """Waits a while for the live consumer, whose lag would look like differences; the shop may not run."""
        give_up = time.monotonic() + LIVE_WAIT_SECONDS
        while time.monotonic() < give_up:
            if not await self._has_live_lag():
                return
            await asyncio.sleep(LIVE_POLL_SECONDS)

    async def _is_live_behind(self) -> bool:
        store, _ = self.sources.source
        has_outbox: bool = await store.pool.fetchval("SELECT EXISTS (SELECT FROM outbox)")
        return has_outbox or await self._has_live_lag()

    async def _has_live_lag(self) -> bool:
        shadow = self.shadow
        live = await read_offsets(shadow.connection, shadow.live, shadow.target.name)
        return any(live.get(partition, 0) < offset for partition, offset in (await shadow.offsets()).items())
