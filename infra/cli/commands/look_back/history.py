"""`till history`: lists a stream's events and what each changed, alone or with the related events of all services."""

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import run_query
from infra.cli.render.events import by, change_documents, change_lines, event_document, since, when
from infra.cli.render.streams import STREAM, require_stream
from shared.store.address import database_url

if TYPE_CHECKING:
    from services.operations.history.stream_history import HistoryEntry

ORDERS_OF_A_PRODUCT = 20


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--related", is_flag=True, help="Show one timeline of cart, order, stock and payment.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Show only the last N events of STREAM.")
@json_option
def history(stream: str, related: bool, last: int | None, as_json: bool) -> None:
    """List the events of STREAM in order, each with what it changed.

    STREAM is cart:ID, order:ID, payment:ID or stock:SKU. With --related, the events of all services that belong to the
    same order are shown as one timeline. For a product, these are the orders that its last 20 events (or --last) name.
    Personal data stays encrypted.

    \b
    Examples:
      till history order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till history order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11 --related
      till history stock:MUG-350 --last 10
    """
    entries = run_query(_history(database_url(), stream, related, last, as_json))
    if as_json:
        print_json({"stream": stream, "events": [_document(entry) for entry in entries]})


async def _history(url: str, stream: str, related: bool, last: int | None, keep: bool) -> "list[HistoryEntry]":
    """Prints the events as they are read; with `keep`, returns them instead, for a JSON document."""
    from services.operations.history.stream_history import read_history, read_related_history
    from services.operations.reading.stores import category_of, open_stores, store_of
    from services.shop.services import all_deciders, decider_of

    kept: list[HistoryEntry] = []
    async with open_stores(url, all_deciders() if related else decider_of(category_of(stream))) as stores:
        latest = await require_stream(store_of(stores, stream), stream)
        if related:
            kept = await read_related_history(stores, stream, latest, last or ORDERS_OF_A_PRODUCT)
            if not keep:
                _print_timeline(kept, stream)
            return kept
        async for entry in read_history(stores, stream, latest, last):
            kept.append(entry) if keep else _print(entry)
        return kept


def _print(entry: "HistoryEntry") -> None:
    recorded = entry.happened.recorded
    line = Text.assemble((f"{recorded.version:>4}  ", "dim"), (f"{recorded.type:<24}", "bold"), when(recorded.time))
    out.print(line.append(by(recorded.actor), "dim"))
    _print_changes(entry, " " * 6)


def _print_timeline(timeline: "list[HistoryEntry]", stream: str) -> None:
    beginning = timeline[0].happened.recorded.time
    out.print(Text.assemble("Beginning at ", when(beginning), "\n"))
    for entry in timeline:
        recorded = entry.happened.recorded
        line = since(beginning, recorded.time)
        line.pad_right(max(0, 24 - len(line)))
        line.append(f"{recorded.type:<24}", "bold" if recorded.stream_id == stream else "")
        line.append(f"{recorded.stream_id}@{recorded.version}", "cyan" if recorded.stream_id == stream else "dim")
        out.print(line.append(by(recorded.actor), "dim"))
        _print_changes(entry, " " * 24)


def _print_changes(entry: "HistoryEntry", indent: str) -> None:
    """Prints the changes of an event, except that a stream got its own id."""
    key = entry.happened.recorded.stream_id.partition(":")[2]
    for change in change_lines([change for change in entry.changes if change.after != key], indent):
        out.print(change)


def _document(entry: "HistoryEntry") -> dict[str, Any]:
    from services.operations.history.fields import event_fields

    return {
        **event_document(entry.happened.recorded),
        "service": entry.service,
        "data": event_fields(entry.happened.event),
        "changes": change_documents(entry.changes),
    }
