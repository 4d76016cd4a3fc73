"""JSON shapes that more than one service speaks."""

from typing import Annotated, Any, Protocol

from fastapi import Path
from pydantic import BaseModel, Field

from shared.http.examples import LINE, PRICE, like
from shared.money import Money

Sku = Annotated[str, Path(max_length=60, pattern=r"^[\x21-\x7e]+$", examples=["MUG-350"])]


class Price(BaseModel):
    model_config = like(PRICE)

    amount: Annotated[int, Field(description="Minor units: cents of a euro.")]
    currency: Annotated[str, Field(description="ISO 4217.")]


class LineView(BaseModel):
    model_config = like(LINE)

    sku: str
    name: str
    quantity: int
    unit_price: Price


class Line(Protocol):
    """Of a cart or an order: each has its own, and they look alike."""

    @property
    def sku(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def quantity(self) -> int: ...
    @property
    def unit_price(self) -> Money: ...


def line_view(line: Line) -> dict[str, Any]:
    return {
        "sku": line.sku,
        "name": line.name,
        "quantity": line.quantity,
        "unit_price": price_view(line.unit_price),
    }


def price_view(money: Money) -> dict[str, Any]:
    return {"amount": money.amount, "currency": money.currency}
