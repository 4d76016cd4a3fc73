"""JSON shapes that more than one service sends."""

from collections.abc import Mapping
from typing import Annotated, Any, Protocol

from fastapi import Path
from pydantic import BaseModel, Field

from services.common.examples import LINE, PRICE, response_body
from services.common.money import Money

Sku = Annotated[str, Path(max_length=60, pattern=r"^[\x21-\x7e]+$", examples=["MUG-350"])]


class Price(BaseModel):
    model_config = response_body(PRICE)

    amount: Annotated[int, Field(description="Minor units: cents of a euro.")]
    currency: Annotated[str, Field(description="ISO 4217.")]


class LineBody(BaseModel):
    model_config = response_body(LINE)

    sku: str
    name: str
    quantity: int
    unit_price: Price


class Line(Protocol):
    """The fields of a line. Carts and orders each have a class of their own with these."""

    @property
    def sku(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def quantity(self) -> int: ...
    @property
    def unit_price(self) -> Money: ...


def line_body(line: Line) -> dict[str, Any]:
    return {
        "sku": line.sku,
        "name": line.name,
        "quantity": line.quantity,
        "unit_price": price_body(line.unit_price),
    }


def body_of_row(body: type[BaseModel], row: Mapping[str, Any], **composed: Any) -> dict[str, Any]:
    """Returns a body of a row of a read model: the composed fields as given, the others by column name."""
    return {name: composed[name] if name in composed else row[name] for name in body.model_fields}


def price_body(money: Money) -> dict[str, Any]:
    return {"amount": money.amount, "currency": money.currency}
