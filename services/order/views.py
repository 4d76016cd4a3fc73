"""The read model of orders that customers list: one row per order, folded from its stream."""

import orjson
from sqlalchemy import BigInteger, Index, Text
from sqlmodel import Field, SQLModel

from services.order.events import OrderCancelled, OrderConfirmed, OrderHeld, OrderPlaced, PaymentRequested
from shared.messaging.incoming import Incoming
from shared.store.views import RowView


class OrderRow(SQLModel):
    order_id: str = Field(sa_type=Text, primary_key=True)
    cart_id: str = Field(sa_type=Text)
    customer_id: str = Field(sa_type=Text)
    status: str = Field(sa_type=Text)
    reason: str | None = Field(sa_type=Text)
    lines: str = Field(sa_type=Text)
    total: int = Field(sa_type=BigInteger)
    currency: str = Field(sa_type=Text)
    payment_id: str | None = Field(sa_type=Text)
    placed_at: int = Field(sa_type=BigInteger)
    version: int


def change(order: OrderRow | None, message: Incoming) -> OrderRow | None:
    event = message.data
    if isinstance(event, OrderPlaced):
        return OrderRow(
            order_id=event.order_id,
            cart_id=event.cart_id,
            customer_id=event.customer_id,
            status="placed",
            reason=None,
            lines=orjson.dumps(event.lines).decode(),
            total=event.total.amount,
            currency=event.total.currency,
            payment_id=None,
            placed_at=event.at,
            version=message.version,
        )
    if order is None:
        return None
    match event:
        case PaymentRequested():
            order.status, order.payment_id = "reserved", event.payment_id
        case OrderHeld():
            order.status = "in_review"
        case OrderConfirmed():
            order.status = "confirmed"
        case OrderCancelled():
            order.status, order.reason = "cancelled", event.reason
    return order


ORDERS = RowView(
    OrderRow,
    "orders",
    lambda message: message.stream_id.removeprefix("order:"),
    change,
    indexes=[Index("orders_customer", "customer_id", "placed_at", "order_id"), Index("orders_cart", "cart_id")],
)
