"""Streams on the command line: `cart:ID`, `order:ID`, `payment:ID`, `stock:SKU`; a place in one, and what is not."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from infra.cli.moments import MOMENT, both
from infra.cli.refusals import BadInput

if TYPE_CHECKING:
    from services.replay.rolls import Roll
    from shared.handler import Handled

KINDS = ("cart", "order", "payment", "stock")
SKU = re.compile(r"[\x21-\x7e]{1,60}")
VERSION = re.compile(r"\d{1,9}", re.ASCII)


class Stream(click.ParamType[str, str]):
    name = "STREAM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, _, key = str(value).partition(":")
        if kind not in KINDS or not key:
            self.fail(f"{value!r} names no stream. One is cart:ID, order:ID, payment:ID or stock:SKU.", param, ctx)
        if kind == "stock":
            if not SKU.fullmatch(key):
                self.fail(f"{key!r} is no SKU. One is like MUG-350.", param, ctx)
            return f"{kind}:{key}"
        try:
            return f"{kind}:{UUID(key)}"
        except ValueError:
            self.fail(
                f"{key!r} is no id: that of a cart, order or payment is a UUID, such as the API has answered.",
                param,
                ctx,
            )


class Place(click.ParamType[int | datetime, str]):
    """A version, or a moment."""

    name = "T|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | datetime:
        if isinstance(value, int) or VERSION.fullmatch(value):
            return int(value)
        return MOMENT.convert(value, param, ctx)


STREAM = Stream()
PLACE = Place()


async def known(roll: "Roll", stream: str) -> int:
    """Its latest version."""
    if latest := await roll.latest(stream):
        return latest
    named = {"stock": "SKU right", "order": "id complete, and of an order"}
    kind = stream.partition(":")[0]
    hint = f"Is the {named.get(kind, f'id complete, and of a {kind}')}?"
    raise BadInput(f"There is no stream {stream}: nothing ever happened to it.", hint)


async def as_it_was(roll: "Roll", stream: str, place: int | datetime | None) -> "Handled[Any, Any]":
    """Its state at a version or a moment, or as of now. What there never was is refused."""
    from shared.timetravel import AsOf

    latest = await known(roll, stream)
    version = place if isinstance(place, int) else None
    if version is not None and version > latest:
        raise BadInput(f"{stream} has no version {version}.", f"Its latest is {latest}; see: till history {stream}")
    at = place if isinstance(place, datetime) else None
    handled = await roll.past.state(stream, AsOf(latest if version is None else version, at))
    if at and not handled.version:
        first = await roll.event(stream, 1)
        begun = both(first.time) if first else "later"
        raise BadInput(f"{stream} did not exist then.", f"Ask for a moment from its beginning on: {begun}.")
    return handled
