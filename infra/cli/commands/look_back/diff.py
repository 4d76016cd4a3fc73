"""`till diff`: shows what changed in a stream between two moments, and by which events."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json, print_wide
from infra.cli.render.errors import run_query
from infra.cli.render.events import event_document, when, words
from infra.cli.render.moments import both
from infra.cli.render.streams import PLACE, STREAM, read_state_at, require_stream
from shared.store.address import database_url

if TYPE_CHECKING:
    from services.operations.history.changes import StreamDiff, TracedChange


@click.command()
@click.argument("stream", type=STREAM)
@click.option(
    "--from", "start", type=PLACE, required=True, help="A moment or a version. Version 0 is before the first event."
)
@click.option("--to", "end", type=PLACE, help="A moment or a version. Default: now.")
@json_option
def diff(stream: str, start: int | datetime, end: int | datetime | None, as_json: bool) -> None:
    """Show what changed in STREAM between two moments or versions.

    STREAM is cart:ID, order:ID, payment:ID or stock:SKU. Each changed field is shown with the event that changed it.

    \b
    Examples:
      till diff order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11 --from -1h
      till diff cart:0197f3a2-6f0e-7c3b-9d51-2f6f0c8e1b7a --from 2 --to 5
      till diff stock:MUG-350 --from 2026-11-16T07:00:00Z --to -5m
    """
    found = run_query(_diff(database_url(), stream, start, end))
    if as_json:
        print_json(
            {
                "stream": stream,
                "from": {"asked": start, "version": found.before},
                "to": {"asked": end, "version": found.after},
                "changes": [_document(traced) for traced in found.changes],
            }
        )
        return
    span = f"version {found.before}{_asked(start)} → version {found.after}{_asked(end)}"
    out.print(Text.assemble((stream, "bold"), f": {span}\n"))
    if not found.changes:
        out.print(Text("Nothing changed.", "dim"))
        return
    table = Table("field", "was", "is", "because of", box=None, header_style="dim", pad_edge=False)
    for traced in found.changes:
        change = traced.change
        table.add_row(change.field, Text(words(change.before), "red"), Text(words(change.after), "green"), _by(traced))
    print_wide(table)


async def _diff(url: str, stream: str, start: int | datetime, end: int | datetime | None) -> "StreamDiff":
    from services.operations.history.changes import diff_stream
    from services.operations.reading.stores import category_of, open_stores, store_of
    from services.shop.services import decider_of

    async with open_stores(url, decider_of(category_of(stream))) as stores:
        store = store_of(stores, stream)
        await require_stream(store, stream)
        before, after = await read_state_at(store, stream, start), await read_state_at(store, stream, end)
        if before.version > after.version or _is_later(start, end):
            raise click.UsageError(f"--from (version {before.version}) is later than --to (version {after.version}).")
        return await diff_stream(store, before, after)


def _is_later(start: int | datetime, end: int | datetime | None) -> bool:
    return isinstance(start, datetime) and isinstance(end, datetime) and start > end


def _asked(place: int | datetime | None) -> str:
    return f" ({both(place)})" if isinstance(place, datetime) else " (now)" if place is None else ""


def _by(traced: "TracedChange") -> Text:
    if traced.last is None:
        return Text()
    event = Text.assemble((f"{traced.last.type} ", "bold"), f"v{traced.last.version}, ", when(traced.last.time))
    more = traced.events - 1
    return event.append(f" (and {more} before it)", "dim") if more else event


def _document(traced: "TracedChange") -> dict[str, Any]:
    change = traced.change
    return {
        "field": change.field,
        "before": change.before,
        "after": change.after,
        "event": traced.last and event_document(traced.last),
        "events": traced.events,
    }
