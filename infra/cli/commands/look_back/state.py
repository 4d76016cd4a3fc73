"""`till state`: shows a stream as it is, or as it was."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import run_query
from infra.cli.render.events import event_document, when, words
from infra.cli.render.moments import FORMATS, MOMENT, both
from infra.cli.render.streams import STREAM, read_state_at
from shared.store.address import database_url

if TYPE_CHECKING:
    from services.operations.history.fields import Fields
    from shared.envelope import Recorded


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--at", type=MOMENT, help=f"Show it as it was at this moment: {FORMATS}.")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Show it as it was at this version.")
@json_option
def state(stream: str, at: datetime | None, version: int | None, as_json: bool) -> None:
    """Show the state of STREAM as it is, or as it was. Personal data stays encrypted.

    STREAM is cart:ID, order:ID, payment:ID or stock:SKU. The state is folded from the events, starting at the nearest
    stored milestone, so a stream of a hundred thousand events is as fast as a short one.

    \b
    Examples:
      till state order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till state order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11 --version 2
      till state stock:MUG-350 --at -1h
      till state stock:MUG-350 --at 2026-11-16T07:44:21Z --json
    """
    if at is not None and version is not None:
        raise click.UsageError("--at and --version exclude each other.")
    seen, latest, last = run_query(_state(database_url(), stream, version if at is None else at))
    if as_json:
        print_json(
            {
                "stream": stream,
                "version": last.version,
                "latest_version": latest,
                "at": at,
                "last_event": event_document(last),
                "state": seen,
            }
        )
        return
    asked = f" as of {both(at)}" if at else ""
    out.print(Text.assemble((stream, "bold"), f"{asked}: version {last.version} of {latest}"))
    out.print(Text.assemble(f"since {last.type} at ", when(last.time), f", by {last.actor}\n"))
    _print(seen)


async def _state(url: str, stream: str, place: int | datetime | None) -> "tuple[Fields, int, Recorded]":
    from services.operations.history.fields import state_fields
    from services.operations.reading.stores import category_of, open_stores, store_of
    from services.shop.services import decider_of

    async with open_stores(url, decider_of(category_of(stream))) as stores:
        store = store_of(stores, stream)
        found = await read_state_at(store, stream, place)
        last = await store.event(stream, found.version)
        assert last is not None
        return state_fields(found.state, store.decider.initial), await store.latest_version(stream), last


def _print(seen: "Fields", indent: str = "  ") -> None:
    width = max(len(name) for name in seen)
    for name, value in seen.items():
        if _has_parts(value):
            out.print(Text(f"{indent}{name}"))
            _print(value, indent + "  ")
        else:
            out.print(Text.assemble((f"{indent}{name:<{width}}  ", "dim"), words(value)))


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and "unit_price" not in value
