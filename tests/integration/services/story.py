"""Writes one order by hand: its cart, its stock, its payment, each event with its cause."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from uuid_utils import uuid7

from services.cart.api import order_of
from services.cart.events import CartCheckedOut, CartOpened, ItemAdded
from services.cart.events import Line as CartLine
from services.catalog.events import ProductListed, StockReserved
from services.common.money import Money
from services.order.decider import payment_of
from services.order.events import Line, LineReserved, OrderPlaced, PaymentRequested
from services.payment.events import AuthorizationRequested
from shared.envelope import Recorded, millis
from tests.integration.services.written import ANN, Pen

PRICE, TOTAL = Money(1190, "EUR"), Money(2380, "EUR")
NAME = "Enamel mug"
SECRET = "sealed-name-and-address"


@dataclass
class Story:
    pen: Pen
    sku: str
    cart_id: str
    events: dict[str, Recorded]
    """The events so far, by type."""

    @property
    def order_id(self) -> str:
        return order_of(self.cart_id)

    @property
    def payment_id(self) -> str:
        return payment_of(self.order_id)

    @property
    def streams(self) -> dict[str, str]:
        return {
            "cart": f"cart:{self.cart_id}",
            "order": f"order:{self.order_id}",
            "payment": f"payment:{self.payment_id}",
            "stock": f"stock:{self.sku}",
        }

    @property
    def lines(self) -> tuple[Line, ...]:
        return (Line(self.sku, NAME, 2, PRICE),)

    def record(self, category: str, *events: Any, because: str = "", **more: Any) -> Recorded:
        cause = self.events[because] if because else None
        recorded = self.pen.write(self.streams[category], *events, because=cause, **more)
        for event in events:
            self.events[type(event).__name__] = recorded
        return recorded


def listed(pen: Pen, sku: str, stock: int = 10) -> Recorded:
    return pen.write(f"stock:{sku}", ProductListed(sku, NAME, PRICE, stock), actor="operator-1")


def checked_out(pen: Pen, sku: str) -> Story:
    """Writes a cart of two pieces that is checked out."""
    story = Story(pen, sku, str(uuid7()), {})
    at = millis(pen.at)
    story.record("cart", CartOpened(ANN, at))
    story.record("cart", ItemAdded(sku, NAME, 2, PRICE, at))
    lines = (CartLine(sku, NAME, 2, PRICE),)
    story.record("cart", CartCheckedOut(story.order_id, ANN, lines, TOTAL, "tok_ok", "express", SECRET))
    return story


def place(story: Story, at: datetime) -> None:
    order = OrderPlaced(story.order_id, story.cart_id, ANN, story.lines, TOTAL, "tok_ok", "express", SECRET, millis(at))
    story.record("order", order, because="CartCheckedOut", at=at)


def placed(pen: Pen, sku: str) -> Story:
    story = checked_out(pen, sku)
    place(story, pen.at)
    return story


def asked_to_pay(pen: Pen, sku: str) -> Story:
    """Writes an order up to where the provider has been asked to authorise, and has not answered."""
    story = placed(pen, sku)
    order_id, payment_id = story.order_id, story.payment_id
    story.record("stock", StockReserved(sku, order_id, 2), because="OrderPlaced")
    requested = PaymentRequested(order_id, payment_id, ANN, TOTAL, "tok_ok")
    story.record("order", LineReserved(order_id, sku), requested, because="StockReserved")
    asked = AuthorizationRequested(payment_id, order_id, ANN, TOTAL, "tok_ok")
    story.record("payment", asked, because="PaymentRequested")
    return story
