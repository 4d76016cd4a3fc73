"""Stories of a shop in which much goes wrong, and silver as frames after them, without Kafka and Delta."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from analytics.catalog import TOPICS, column_of
from analytics.catalog.events import event_tables
from services.cart import events as cart
from services.catalog import events as stock
from services.common.money import Money
from services.order import events as order
from services.payment import events as payment
from shared.envelope import millis
from tests.roll import NOON, ShopEvent, numbered
from tests.unit.analytics.delta import spark_type

Happened = tuple[datetime, str, Any]
MUG, POT = "MUG-1", "POT-2"
PRICES = {MUG: Money(1200, "EUR"), POT: Money(3550, "EUR")}


class Teller:
    """Tells the story of a cart, and of the order it becomes. Each call is what happens next."""

    def __init__(self, cart_id: str = "cart-1", at: datetime = NOON, customer: str = "ann") -> None:
        self.cart_id, self.order_id, self.payment_id = cart_id, f"order-of-{cart_id}", f"payment-of-{cart_id}"
        self.customer = customer
        self.at = at
        self.lines: dict[str, int] = {}
        self.happened: list[Happened] = []

    def wait(self, **time: float) -> "Teller":
        self.at += timedelta(**time)
        return self

    def opens(self) -> "Teller":
        return self._cart(cart.CartOpened(self.customer, millis(self.at)))

    def adds(self, sku: str, quantity: int = 1) -> "Teller":
        self.lines[sku] = self.lines.get(sku, 0) + quantity
        return self._cart(cart.ItemAdded(sku, f"{sku} as put in", quantity, PRICES[sku], millis(self.at)))

    def sets(self, sku: str, quantity: int) -> "Teller":
        self.lines[sku] = quantity
        return self._cart(cart.QuantitySet(sku, quantity, PRICES[sku], millis(self.at)))

    def removes(self, sku: str) -> "Teller":
        return self._cart(cart.ItemRemoved(sku, millis(self.at), self.lines.pop(sku)))

    def is_forgotten(self) -> "Teller":
        return self._cart(cart.CartAbandoned(millis(self.at) - 3_600_000, self._lines(cart.Line)))

    def checks_out(self) -> "Teller":
        lines, token = self._lines(cart.Line), "tok_ok"
        self._cart(cart.CartCheckedOut(self.order_id, self.customer, lines, self.total, token, "post", "sealed"))
        lines = self._lines(order.Line)
        return self._order(
            order.OrderPlaced(
                self.order_id, self.cart_id, self.customer, lines, self.total, token, "post", "sealed", millis(self.at)
            )
        )

    def gets_stock(self) -> "Teller":
        for sku, quantity in self.lines.items():
            self._stock(stock.StockReserved(sku, self.order_id, quantity))
            self._order(order.LineReserved(self.order_id, sku))
        self._order(
            order.PaymentRequested(self.order_id, self.payment_id, self.customer, self.total, "tok_ok"),
        )
        return self._pay(payment.AuthorizationRequested(*self._charge, "tok_ok"))

    def is_refused_stock(self) -> "Teller":
        sku, quantity = next(iter(self.lines.items()))
        self._stock(stock.StockRejected(sku, self.order_id, quantity, 0))
        return self.is_cancelled("out_of_stock", asked=False)

    def is_declined(self) -> "Teller":
        self._pay(payment.PaymentDeclined(*self._charge, "tok_ok", "provider", ("no",)))
        return self.is_cancelled("payment_declined").releases()

    def is_confirmed(self) -> "Teller":
        self._pay(payment.PaymentAuthorized(*self._charge, "auth-1"))
        self._order(
            order.OrderConfirmed(self.order_id, self.payment_id, self.customer, self._lines(order.Line), self.total)
        )
        for sku, quantity in self.lines.items():
            self._stock(stock.StockSold(sku, self.order_id, quantity))
        return self._pay(payment.CaptureRequested(self.payment_id, self.order_id))

    def is_captured(self) -> "Teller":
        return self._pay(payment.PaymentCaptured(*self._charge, "capture-1"))

    def is_cancelled(self, reason: str, asked: bool = True) -> "Teller":
        lines = self._lines(order.Line)
        payment_id = self.payment_id if asked else ""
        return self._order(order.OrderCancelled(self.order_id, payment_id, self.customer, reason, lines))

    def releases(self) -> "Teller":
        for sku, quantity in self.lines.items():
            self._stock(stock.StockReleased(sku, self.order_id, quantity))
        return self

    def is_refunded(self) -> "Teller":
        for sku, quantity in self.lines.items():
            self._stock(stock.StockReturned(sku, self.order_id, quantity))
        self._pay(payment.RefundRequested(self.payment_id, self.order_id))
        return self._pay(payment.PaymentRefunded(*self._charge, "refund-1"))

    @property
    def total(self) -> Money:
        return Money(sum(PRICES[sku].amount * quantity for sku, quantity in self.lines.items()), "EUR")

    @property
    def _charge(self) -> tuple[str, str, str, Money]:
        return self.payment_id, self.order_id, self.customer, self.total

    def _lines(self, line: Callable[..., Any]) -> tuple[Any, ...]:
        return tuple(line(sku, f"{sku} as put in", n, PRICES[sku]) for sku, n in self.lines.items())

    def _cart(self, event: Any) -> "Teller":
        return self._tell(f"cart:{self.cart_id}", event)

    def _order(self, event: Any) -> "Teller":
        return self._tell(f"order:{self.order_id}", event)

    def _pay(self, event: Any) -> "Teller":
        return self._tell(f"payment:{self.payment_id}", event)

    def _stock(self, event: Any) -> "Teller":
        return self._tell(f"stock:{event.sku}", event)

    def _tell(self, stream_id: str, event: Any) -> "Teller":
        self.happened.append((self.at, stream_id, event))
        return self.wait(milliseconds=10)


def listed(sku: str, at: datetime = NOON - timedelta(days=1)) -> Happened:
    return at, f"stock:{sku}", stock.ProductListed(sku, f"{sku} as listed", PRICES[sku], 1000)


def renamed(sku: str, at: datetime, name: str) -> Happened:
    return at, f"stock:{sku}", stock.ProductRenamed(sku, f"{sku} as listed", name)


def told(*stories: Teller | Happened) -> list[ShopEvent]:
    return numbered(h for story in stories for h in (story.happened if isinstance(story, Teller) else [story]))


def eventful(seed: int, carts: int = 12) -> list[ShopEvent]:
    """Makes random stories with every turn that a cart and an order can take, over some hours."""
    chance = random.Random(seed)
    stories = [_at_random(chance, f"{seed}-{n}", NOON + timedelta(minutes=chance.randrange(180))) for n in range(carts)]
    rename = renamed(MUG, NOON + timedelta(minutes=60), "Mug, large")
    return told(listed(MUG), listed(POT), rename, *stories)


def _at_random(chance: random.Random, name: str, at: datetime) -> Teller:
    cart_id = str(uuid5(NAMESPACE_URL, f"cart {name}"))
    story = Teller(cart_id, at, customer=f"customer-{chance.randrange(4)}").opens()
    for _ in range(chance.randint(0, 4)):
        story.wait(minutes=chance.choice([0.2, 1, 45]))
        have = sorted(story.lines)
        match chance.choice(["adds", "adds", "sets", "removes"] if have else ["adds"]):
            case "adds":
                story.adds(chance.choice([MUG, POT]), chance.randint(1, 3))
            case "sets":
                story.sets(chance.choice(have), chance.randint(1, 9))
            case "removes":
                story.removes(chance.choice(have))
    if not story.lines or chance.random() < 0.25:
        return story.wait(hours=1).is_forgotten() if chance.random() < 0.5 else story
    story.wait(minutes=chance.choice([1, 40])).checks_out()
    if chance.random() < 0.1:
        return story.is_refused_stock()
    story.gets_stock().wait(seconds=chance.choice([1, 90]))
    match chance.choice(["declined", "confirmed", "captured", "captured", "refunded", "waits"]):
        case "declined":
            return story.is_declined()
        case "confirmed":
            return story.is_confirmed()
        case "captured":
            return story.is_confirmed().is_captured()
        case "refunded":
            story.is_confirmed().is_captured().wait(minutes=chance.choice([1, 1500]))
            return story.is_cancelled("customer").is_refunded()
        case _:
            return story


def silver_of(spark: SparkSession, events: Sequence[ShopEvent], batches: Iterable[int] = ()) -> dict[str, DataFrame]:
    """Makes each silver table. `batches` has a number for each event, which goes to the column `batch`."""
    numbers = list(batches) or [0] * len(events)
    columns = {table.name.removeprefix("silver."): spark_type(table) for table in event_tables()}
    return {
        table: spark.createDataFrame(
            list(_rows(topic, events, numbers, columns[table].names)),
            StructType([*columns[table].fields, StructField("batch", IntegerType())]),
        )
        for topic, table in TOPICS.items()
    }


def _rows(
    topic: str, events: Sequence[ShopEvent], batches: Sequence[int], columns: list[str]
) -> Iterator[tuple[Any, ...]]:
    for n, (one, batch) in enumerate(zip(events, batches, strict=True)):
        if one.topic == topic:
            kind = type(one.event).__name__
            row = {
                "event_id": one.event_id,
                "event_type": kind,
                "stream_id": one.stream_id,
                "stream_version": one.version,
                "event_time": one.at,
                "topic": topic,
                "partition": 0,
                "offset": n,
                column_of(kind): asdict(one.event),
            }
            yield (*(row.get(column) for column in columns), batch)
