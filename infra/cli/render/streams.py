"""Streams on the command line (`cart:ID`, `order:ID`, `payment:ID`, `stock:SKU`), and a place in one."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from infra.cli.render.errors import BadInput
from infra.cli.render.moments import MOMENT, both

if TYPE_CHECKING:
    from services.operations.reading.stores import Store
    from shared.decider import Versioned

KINDS = ("cart", "order", "payment", "stock")
SKU = re.compile(r"[\x21-\x7e]{1,60}")
VERSION = re.compile(r"\d{1,9}", re.ASCII)


class Stream(click.ParamType[str, str]):
    name = "STREAM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, _, key = str(value).partition(":")
        if kind not in KINDS or not key:
            self.fail(f"{value!r} is not a stream. Write cart:ID, order:ID, payment:ID or stock:SKU.", param, ctx)
        if kind == "stock":
            if not SKU.fullmatch(key):
                self.fail(f"{key!r} is not a SKU. SKUs look like MUG-350.", param, ctx)
            return f"{kind}:{key}"
        try:
            return f"{kind}:{UUID(key)}"
        except ValueError:
            self.fail(
                f"{key!r} is not an id: carts, orders and payments have UUIDs, as the API returns them.",
                param,
                ctx,
            )


class Place(click.ParamType[int | datetime, str]):
    """Parses a version or a moment."""

    name = "T|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | datetime:
        if isinstance(value, int) or VERSION.fullmatch(value):
            return int(value)
        return MOMENT.convert(value, param, ctx)


STREAM = Stream()
PLACE = Place()


async def require_stream(store: "Store", stream: str) -> int:
    """Returns the latest version of a stream, or refuses a stream that has no events."""
    if latest := await store.latest_version(stream):
        return latest
    kind = stream.partition(":")[0]
    hint = "Check the SKU." if kind == "stock" else f"Check that this is the complete id of the {kind}."
    raise BadInput(f"There is no stream {stream}: it has no events.", hint)


async def read_state_at(store: "Store", stream: str, place: int | datetime | None) -> "Versioned[Any]":
    """Returns the state of a stream at a version or a moment, or now. A place that never existed is refused."""
    from shared.store.time_travel import AsOf

    latest = await require_stream(store, stream)
    version = place if isinstance(place, int) else None
    if version is not None and version > latest:
        raise BadInput(f"{stream} has no version {version}.", f"Its latest is {latest}; see: till history {stream}")
    at = place if isinstance(place, datetime) else None
    found = await store.past.state(stream, AsOf(latest if version is None else version, at))
    if at and not found.version:
        first = await store.event(stream, 1)
        begun = both(first.time) if first else "later"
        raise BadInput(f"{stream} did not exist then.", f"Its first event was at {begun}.")
    return found
