"""Rebuilds a view from its events in a shadow table while the shop sells; catches up, compares, and swaps the two.

If it is interrupted, the live view is untouched, and the next run continues where this one stopped.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from services.operations.reading.views import Target
from services.operations.rebuild.build import Rebuilt, Report, Source, open_sources
from services.operations.rebuild.shadow_view import new_schema, old_schema
from shared.schemas.contract.event_schemas import Schemas
from shared.service import Service
from shared.settings import Settings


async def rebuild(
    settings: Settings,
    services: Sequence[Service],
    target: Target,
    source: Source = "store",
    report: Report = lambda _: None,
    schemas: Schemas | None = None,
) -> Rebuilt:
    """Builds the view again from the store or the topic, and swaps it with the live one."""
    done = Rebuilt(target.name, source, schema=old_schema(target))
    async with (
        open_sources(settings, services, target, done, schemas) as sources,
        sources.open_build(new_schema(target), done, report) as build,
    ):
        progress = await build.resume_or_begin(source)
        done.resumed = progress.events
        done.events = progress.events
        if source == "store" and not progress.is_full:
            await build.fold_store(progress.cursor)
            await build.shadow.mark_full()
        await build.catch_up_with_live()
        await build.shadow.create_indexes()
        await build.compare_and_swap()
    return done


async def undo(
    settings: Settings,
    services: Sequence[Service],
    target: Target,
    report: Report = lambda _: None,
    schemas: Schemas | None = None,
) -> Rebuilt:
    """Brings back the view that was replaced, and applies what has happened since. To undo that, undo again."""
    done = Rebuilt(target.name, "undo", schema=old_schema(target))
    async with open_sources(settings, services, target, done, schemas) as sources:
        await sources.require_replaced_view()
        async with sources.open_build(old_schema(target), done, report) as build:
            await build.catch_up_with_live()
            await build.compare_and_swap()
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
    """Builds the view as it was at a moment, in its own schema, for inspection. It replaces nothing."""
    schema = f"{target.service.name}__at_{moment.astimezone(UTC):%Y%m%dt%H%M%S}"
    done = Rebuilt(target.name, source, schema=schema)
    async with open_sources(settings, services, target, done, schemas) as sources:
        await sources.require_events_before(moment)
        async with sources.open_build(schema, done, report) as build:
            await build.shadow.begin(source, "", await build.topic.beginnings())
            if source == "store":
                await build.fold_store(until=moment)
            else:
                await build.catch_up_to(await build.topic.ends(), until=moment)
            await build.shadow.create_indexes()
            done.rows = await build.shadow.count_rows()
    return done
