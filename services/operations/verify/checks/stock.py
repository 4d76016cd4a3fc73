"""Invariant I9: no piece is promised twice and none is lost: available + reserved + sold = supplied, order by order.

The pieces of each product are counted from its events, without the decider, and compared with the orders they are for.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from services.catalog.events import (
    ProductListed,
    StockCounted,
    StockReleased,
    StockReserved,
    StockReturned,
    StockSold,
)
from services.operations.reading.fold import FoldedBatch, fold_streams, read_streams
from services.operations.reading.row_builders import RowBuilder
from services.operations.reading.stores import Store
from services.operations.verify.findings import CheckContext, Findings, Violation
from services.operations.verify.suspects import settle_suspects
from shared.messaging.incoming import Incoming

NAME, ABOUT = "stock", "available + reserved + sold = supplied, for every product and order"
UNDECIDED = {"placed", "reserved", "in_review"}
ORDERS_PER_QUERY = 2_000
SOLD = """
SELECT line ->> 'sku', sum((line ->> 'quantity')::int) FROM orders, json_array_elements(lines::json) line
WHERE status = 'confirmed' GROUP BY 1
"""
BUYERS = """
SELECT order_id, (line ->> 'quantity')::int FROM orders, json_array_elements(lines::json) line
WHERE status = 'confirmed' AND line ->> 'sku' = $1
"""

Suspect = tuple[str, str]
"""An SKU and an order id."""


@dataclass
class Pieces:
    """The pieces of one product, counted independently of the rules that wrote the events."""

    sku: str
    supplied: int = 0
    held: dict[str, int] = field(default_factory=dict)
    """Pieces by order, as in `sold`."""
    sold: dict[str, int] = field(default_factory=dict)
    gone: int = 0
    """All pieces that are held or sold."""
    wrong: list[tuple[int, str]] = field(default_factory=list)
    """Version and description of everything that does not add up."""

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
            what = f"{type(event).__name__} has {event.quantity} pieces; order {event.order_id} had {had}."
            self.wrong.append((version, what))


class PiecesBuilder:
    """Counts the pieces of one product's stream after the other."""

    def __init__(self) -> None:
        self._pieces: Pieces | None = None

    def feed(self, message: Incoming) -> None:
        if self._pieces is None:
            self._pieces = Pieces(message.stream_id.removeprefix("stock:"))
        self._pieces.count(message.version, message.data)

    def finish(self) -> list[tuple[str, Pieces]]:
        pieces, self._pieces = self._pieces, None
        return [(pieces.sku, pieces)] if pieces else []


class StockCheck:
    """Compares the pieces of each product with the orders that hold or bought them."""

    def __init__(self, context: CheckContext, stock: Store, orders: Store) -> None:
        self.context = context
        self.store = stock
        self.builder: RowBuilder = PiecesBuilder()
        self.orders = orders
        self.findings = Findings(NAME, ABOUT)
        self.suspects: set[Suspect] = set()
        self.sold: dict[str, int] = {}
        """Pieces sold by SKU."""

    async def take(self, batch: FoldedBatch) -> None:
        for sku, pieces in batch.rows:
            for version, what in pieces.wrong:
                self._add(sku, f"version {version}", what)
            self.suspects |= {(sku, order_id) async for order_id in self._differing_orders(pieces)}
            self.sold[sku] = sum(pieces.sold.values())
        for stream, version, reason in batch.aside:
            self._add(stream.removeprefix("stock:"), f"version {version}", f"It cannot be read: {reason}")
        self.findings.looked_at += batch.events

    async def finish(self) -> Findings:
        await self._find_unsold()
        await settle_suspects(self.context, self.suspects, self.judge, self.findings)
        return self.findings

    async def _count_pieces(self, sku: str) -> Pieces:
        chunks = read_streams(self.store.pool, [f"stock:{sku}"])
        counted: list[tuple[str, Pieces]] = [
            row async for [batch] in fold_streams(self.store, [PiecesBuilder()], chunks) for row in batch.rows
        ]
        return counted[0][1] if counted else Pieces(sku)

    async def _differing_orders(self, pieces: Pieces) -> AsyncIterator[str]:
        """Yields orders that hold pieces they should not, or another number than they say."""
        ids = [*pieces.held, *pieces.sold]
        for start in range(0, len(ids), ORDERS_PER_QUERY):
            orders = await self._orders(ids[start : start + ORDERS_PER_QUERY])
            for order_id in ids[start : start + ORDERS_PER_QUERY]:
                if _problem(pieces, order_id, orders.get(order_id)):
                    yield order_id

    async def _orders(self, ids: Sequence[str]) -> dict[str, tuple[str, Mapping[str, int]]]:
        """Returns status and pieces by SKU of each order."""
        rows = await self.orders.pool.fetch(
            "SELECT order_id, status, lines FROM orders WHERE order_id = ANY($1::text[])", list(ids)
        )
        return {
            order_id: (status, {line["sku"]: line["quantity"] for line in orjson.loads(lines)})
            for order_id, status, lines in rows
        }

    async def _find_unsold(self) -> None:
        """Finds confirmed orders whose pieces were never sold: compares sums first, then single orders."""
        ordered = dict(map(tuple, await self.orders.pool.fetch(SOLD, timeout=600)))
        products = self.sold.keys() if self.context.since else self.sold.keys() | ordered.keys()
        for sku in products:
            if ordered.get(sku, 0) != self.sold.get(sku, 0):
                pieces = await self._count_pieces(sku)
                for order_id, quantity in await self.orders.pool.fetch(BUYERS, sku, timeout=600):
                    if pieces.sold.get(order_id, 0) != quantity:
                        self.suspects.add((sku, order_id))

    async def judge(self, suspects: Collection[Suspect], is_last: bool) -> Collection[Suspect]:
        undecided: list[Suspect] = []
        for sku in sorted({sku for sku, _ in suspects}):
            ids = [order_id for suspect, order_id in suspects if suspect == sku]
            orders = await self._orders(ids)
            pieces = await self._count_pieces(sku)
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


def stock_checks(context: CheckContext) -> list[StockCheck]:
    """Returns one check; none where a stack has no stock or no orders, as in tests of one service."""
    stock, orders = context.store_of("stock"), context.store_of("order")
    return [StockCheck(context, stock, orders)] if stock and orders else []
