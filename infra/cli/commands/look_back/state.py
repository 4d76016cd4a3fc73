"""`till state`: a stream as it is, or as it was."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from infra.cli.moments import MOMENT, both
from infra.cli.refusals import reading
from infra.cli.streams import STREAM, as_it_was
from infra.cli.telling import event_document, when, words
from shared.address import database_url

if TYPE_CHECKING:
    from services.replay.portrait import Portrait
    from shared.envelope import Recorded


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--at", type=MOMENT, help="As it was at this moment: RFC 3339, or so long ago (-5m).")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="As it was at this version.")
@as_json
def state(stream: str, at: datetime | None, version: int | None, as_json: bool) -> None:
    """The state of STREAM: as of now, or as it was. Personal data stays sealed.

    It is folded from its events, on top of the nearest milestone that was left on the way: a stream of a hundred
    thousand events is answered as fast as a short one.

    \b
    Examples:
      till state order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till state order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11 --version 2
      till state stock:MUG-350 --at -1h
      till state stock:MUG-350 --at 2026-11-16T07:44:21Z --json
    """
    if at is not None and version is not None:
        raise click.UsageError("--at and --version exclude each other.")
    seen, latest, last = reading(_state(database_url(), stream, version if at is None else at))
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


async def _state(url: str, stream: str, place: int | datetime | None) -> "tuple[Portrait, int, Recorded]":
    from services.replay.portrait import of_state
    from services.replay.rolls import category_of, open_rolls

    category = category_of(stream)
    async with open_rolls(url, [category]) as rolls:
        roll = rolls[category]
        handled = await as_it_was(roll, stream, place)
        last = await roll.event(stream, handled.version)
        assert last is not None
        return of_state(handled.state, roll.decider.initial), await roll.latest(stream), last


def _print(seen: "Portrait", indent: str = "  ") -> None:
    width = max(len(name) for name in seen)
    for name, value in seen.items():
        if _has_parts(value):
            out.print(Text(f"{indent}{name}"))
            _print(value, indent + "  ")
        else:
            out.print(Text.assemble((f"{indent}{name:<{width}}  ", "dim"), words(value)))


def _has_parts(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and "unit_price" not in value
