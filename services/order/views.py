"""The orders as customers list them: one row an order, folded from its stream."""

import orjson
from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Text
from sqlmodel import Field, SQLModel

from services.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderHeld,
    OrderPlaced,
    PaymentRequested,
)
from shared.consumer import Incoming
from shared.views import RowView

VIEWS = MetaData()


class OrderRow(SQLModel):
    order_id: str = Field(sa_column=Column(Text, primary_key=True))
    cart_id: str = Field(sa_column=Column(Text, nullable=False))
    customer_id: str = Field(sa_column=Column(Text, nullable=False))
    status: str = Field(sa_column=Column(Text, nullable=False))
    reason: str | None = Field(sa_column=Column(Text, nullable=True))
    lines: str = Field(sa_column=Column(Text, nullable=False))
    total: int = Field(sa_column=Column(BigInteger, nullable=False))
    currency: str = Field(sa_column=Column(Text, nullable=False))
    payment_id: str | None = Field(sa_column=Column(Text, nullable=True))
    placed_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    version: int = Field(sa_column=Column(Integer, nullable=False))


class OrderTable(OrderRow, table=True):
    __tablename__ = "orders"
    __table_args__ = (Index("orders_customer", "customer_id", "placed_at", "order_id"), Index("orders_cart", "cart_id"))
    metadata = VIEWS


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


ORDERS = RowView(OrderRow, OrderTable, lambda message: message.stream_id.removeprefix("order:"), change)
