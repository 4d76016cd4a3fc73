"""`till history`: a stream's events with what each changed, alone or among those of all services."""

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from infra.cli.refusals import reading
from infra.cli.streams import STREAM, known
from infra.cli.telling import by, change_documents, changes_told, event_document, since, when
from shared.address import database_url

if TYPE_CHECKING:
    from services.replay.history import Told

ORDERS_OF_A_PRODUCT = 20


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--related", is_flag=True, help="One timeline of cart, order, stock and payment.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N events of STREAM.")
@as_json
def history(stream: str, related: bool, last: int | None, as_json: bool) -> None:
    """The events of STREAM in order, each with what it changed.

    STREAM is cart:ID, order:ID, payment:ID or stock:SKU. With --related, the events of all services that belong to the
    same order are told as one story; of a product, those of the orders that its last 20 events (or --last) name.
    Personal data stays sealed.

    \b
    Examples:
      till history order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till history order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11 --related
      till history stock:MUG-350 --last 10
    """
    told = reading(_history(database_url(), stream, related, last, as_json))
    if as_json:
        print_json({"stream": stream, "events": [_document(one) for one in told]})


async def _history(url: str, stream: str, related: bool, last: int | None, keep: bool) -> "list[Told]":
    """Printed as they are read, unless they are kept for a document."""
    from services.replay import history as replay
    from services.replay.rolls import CATEGORIES, category_of, open_rolls

    kept: list[Told] = []
    async with open_rolls(url, CATEGORIES if related else [category_of(stream)]) as rolls:
        latest = await known(rolls[category_of(stream)], stream)
        if related:
            kept = await replay.related(rolls, stream, latest, last or ORDERS_OF_A_PRODUCT)
            if not keep:
                _print_story(kept, stream)
            return kept
        async for told in replay.history(rolls, stream, latest, last):
            kept.append(told) if keep else _print(told)
        return kept


def _print(told: "Told") -> None:
    recorded = told.happened.recorded
    line = Text.assemble((f"{recorded.version:>4}  ", "dim"), (f"{recorded.type:<24}", "bold"), when(recorded.time))
    out.print(line.append(by(recorded.actor), "dim"))
    _print_changes(told, " " * 6)


def _print_story(story: "list[Told]", stream: str) -> None:
    beginning = story[0].happened.recorded.time
    out.print(Text.assemble("It begins at ", when(beginning), "\n"))
    for told in story:
        recorded = told.happened.recorded
        line = since(beginning, recorded.time)
        line.pad_right(max(0, 24 - len(line)))
        line.append(f"{recorded.type:<24}", "bold" if recorded.stream_id == stream else "")
        line.append(f"{recorded.stream_id}@{recorded.version}", "cyan" if recorded.stream_id == stream else "dim")
        out.print(line.append(by(recorded.actor), "dim"))
        _print_changes(told, " " * 24)


def _print_changes(told: "Told", indent: str) -> None:
    """All but that a stream has the id that it is known by."""
    key = told.happened.recorded.stream_id.partition(":")[2]
    for change in changes_told([change for change in told.changes if change.after != key], indent):
        out.print(change)


def _document(told: "Told") -> dict[str, Any]:
    from services.replay.portrait import of_event

    return {
        **event_document(told.happened.recorded),
        "service": told.service,
        "data": of_event(told.happened.event),
        "changes": change_documents(told.changes),
    }
