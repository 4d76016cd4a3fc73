"""I9: no piece is promised twice, and none is lost: available + reserved + sold = supplied, order by order.

The pieces of each product are counted anew from its events, and every order that has some is asked for.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import orjson

from services.catalog.events import (
    ProductListed,
    StockCounted,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.replay.checks.findings import Findings, Violation, World
from services.replay.checks.suspects import settle
from services.replay.checks.views import changed_since
from services.replay.folding import in_streams, of_streams
from services.replay.targets import Store
from shared.consumer import TRANSIENT

NAME, ABOUT = "stock", "available + reserved + sold = supplied, for every product and order"
UNDECIDED = {"placed", "reserved", "in_review"}
SOME = 2_000
SOLD = """
SELECT line ->> 'sku', sum((line ->> 'quantity')::int) FROM orders, json_array_elements(lines::json) line
WHERE status = 'confirmed' GROUP BY 1
"""
WHO_BOUGHT = """
SELECT order_id, (line ->> 'quantity')::int FROM orders, json_array_elements(lines::json) line
WHERE status = 'confirmed' AND line ->> 'sku' = $1
"""

Suspect = tuple[str, str]
"""A product's SKU, and an order."""


@dataclass
class Pieces:
    """Of one product, counted without the help of the rules that wrote the events."""

    sku: str
    supplied: int = 0
    held: dict[str, int] = field(default_factory=dict)
    """By order."""
    sold: dict[str, int] = field(default_factory=dict)
    gone: int = 0
    """Held or sold."""
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """At which version, and what."""

    def count(self, version: int, event: Any) -> None:
        match event:
            case StockReserved():
                self.held[event.order_id] = self.held.get(event.order_id, 0) + event.quantity
                self.gone += event.quantity
            case StockSold():
                self._take(version, self.held, event)
                self.sold[event.order_id] = self.sold.get(event.order_id, 0) + event.quantity
            case StockReleased():
                self._take(version, self.held, event)
                self.gone -= event.quantity
            case StockReturned():
                self._take(version, self.sold, event)
                self.gone -= event.quantity
            case ProductListed():
                self.supplied += event.stock
            case StockCounted():
                self.supplied += event.difference
        if self.gone > self.supplied:
            self.wrong.append((version, f"{self.gone} pieces are promised or sold, {self.supplied} were supplied."))

    def _take(self, version: int, source: dict[str, int], event: StockSold | StockReleased | StockReturned) -> None:
        had = source.pop(event.order_id, 0)
        if had != event.quantity:
            what = f"{type(event).__name__} is of {event.quantity} pieces; order {event.order_id} had {had}."
            self.wrong.append((version, what))


class Shelves:
    def __init__(self, world: World, stock: Store, orders: Store) -> None:
        self.world = world
        self.stock = stock
        self.orders = orders
        self.findings = Findings(NAME, ABOUT)
        self.suspects: set[Suspect] = set()
        self.sold: dict[str, int] = {}
        """By SKU."""

    async def look(self) -> None:
        since = self.world.since
        chunks = (
            of_streams(self.stock.pool, await changed_since(self.stock, since))
            if since
            else in_streams(self.stock.pool)
        )
        async for pieces in self._counted(chunks, is_first=True):
            for version, what in pieces.wrong:
                self._add(pieces.sku, f"version {version}", what)
            self.suspects |= {(pieces.sku, order_id) async for order_id in self._at_odds(pieces)}
            self.sold[pieces.sku] = sum(pieces.sold.values())
        await self._look_the_other_way()

    async def _counted(
        self, chunks: AsyncIterator[Sequence[asyncpg.Record]], is_first: bool = False
    ) -> AsyncIterator[Pieces]:
        current = Pieces("")
        async for chunk in chunks:
            for row in chunk:
                sku = row["stream_id"].removeprefix("stock:")
                if sku != current.sku:
                    if current.sku:
                        yield current
                    current = Pieces(sku)
                try:
                    current.count(row["version"], await self.stock.memory.decode(row["value"]))
                except TRANSIENT:
                    raise
                except Exception as error:  # whatever it is: nobody can count it
                    current.wrong.append((row["version"], f"It cannot be read: {error}"))
            if is_first:
                self.findings.looked_at += len(chunk)
                self.world.tell(len(chunk))
        if current.sku:
            yield current

    async def _pieces(self, sku: str) -> Pieces:
        counted = [it async for it in self._counted(of_streams(self.stock.pool, [f"stock:{sku}"]))]
        return counted[0] if counted else Pieces(sku)

    async def _at_odds(self, pieces: Pieces) -> AsyncIterator[str]:
        """Orders that hold pieces they should not, or other than they say."""
        ids = [*pieces.held, *pieces.sold]
        for start in range(0, len(ids), SOME):
            orders = await self._orders(ids[start : start + SOME])
            for order_id in ids[start : start + SOME]:
                if _problem(pieces, order_id, orders.get(order_id)):
                    yield order_id

    async def _orders(self, ids: Sequence[str]) -> dict[str, tuple[str, Mapping[str, int]]]:
        """Status, and pieces by SKU."""
        rows = await self.orders.pool.fetch(
            "SELECT order_id, status, lines FROM orders WHERE order_id = ANY($1::text[])", list(ids)
        )
        return {
            order_id: (status, {line["sku"]: line["quantity"] for line in orjson.loads(lines)})
            for order_id, status, lines in rows
        }

    async def _look_the_other_way(self) -> None:
        """Confirmed orders whose pieces were never sold: by the sums first, one by one where these differ."""
        ordered = dict(map(tuple, await self.orders.pool.fetch(SOLD, timeout=600)))
        products = self.sold.keys() if self.world.since else self.sold.keys() | ordered.keys()
        for sku in products:
            if ordered.get(sku, 0) != self.sold.get(sku, 0):
                pieces = await self._pieces(sku)
                for order_id, quantity in await self.orders.pool.fetch(WHO_BOUGHT, sku, timeout=600):
                    if pieces.sold.get(order_id, 0) != quantity:
                        self.suspects.add((sku, order_id))

    async def judge(self, suspects: Collection[Suspect], is_last: bool) -> Collection[Suspect]:
        undecided: list[Suspect] = []
        for sku in sorted({sku for sku, _ in suspects}):
            ids = [order_id for of, order_id in suspects if of == sku]
            orders = await self._orders(ids)
            pieces = await self._pieces(sku)
            for order_id in ids:
                if problem := _problem(pieces, order_id, orders.get(order_id)):
                    undecided.append((sku, order_id))
                    if is_last:
                        self._add(sku, f"order:{order_id}", problem)
        return [] if is_last else undecided

    def _add(self, sku: str, position: str, what: str) -> None:
        look = f"till why {position}" if position.startswith("order:") else f"till history stock:{sku}"
        self.findings.add(Violation(what, f"stock:{sku}", position, look))


def _problem(pieces: Pieces, order_id: str, order: tuple[str, Mapping[str, int]] | None) -> str:
    held, sold = pieces.held.get(order_id, 0), pieces.sold.get(order_id, 0)
    if order is None:
        return f"{held + sold} pieces are promised to an order that does not exist."
    status, lines = order
    due = lines.get(pieces.sku, 0)
    if status == "confirmed" and (held, sold) != (0, due):
        return f"It is confirmed with {due} pieces: {sold} are sold to it, {held} are still held."
    if status == "cancelled" and held + sold:
        return f"It is cancelled, and {held} pieces are held for it, {sold} are sold to it."
    if status in UNDECIDED and (sold or held not in (0, due)):
        return f"It is {status} with {due} pieces: {held} are held for it, {sold} are sold to it."
    return ""


async def check(world: World) -> Findings:
    stock, orders = world.service("stock"), world.service("order")
    if stock is None or orders is None:
        return Findings(NAME, ABOUT, notes=["There is no stock here, or there are no orders."])
    shelves = Shelves(world, world.stores[stock.name], world.stores[orders.name])
    await shelves.look()
    await settle(world, shelves.suspects, shelves.judge, shelves.findings)
    return shelves.findings
