"""What is said of products over HTTP: the JSON that is taken and answered, with examples."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from services.catalog.decider import CURRENCY, MAX_NAME, MAX_PRICE, MAX_SKU, MAX_STOCK, SKU
from shared.http.examples import PRICE, like, taken_like
from shared.http.models import Price
from shared.http.openapi import refusal

PRODUCT = {"sku": "MUG-350", "name": "Enamel mug 350 ml", "price": PRICE, "available": 38}
UNKNOWN = refusal(404, "product-unknown", "There is no product MUG-350.")
RESERVED = refusal(409, "stock-below-reserved", "2 pieces of MUG-350 are reserved for orders: fewer cannot be on hand.")


# The bounds of what is taken are told here and kept by the decider, which says which of them was broken.
NewSku = Annotated[
    str,
    Path(
        max_length=60,
        pattern=r"^[\x21-\x7e]+$",
        json_schema_extra={"pattern": f"^{SKU.pattern}$", "maxLength": MAX_SKU},
        examples=["MUG-350"],
    ),
]
Name = Annotated[str, Field(json_schema_extra={"pattern": r"\S", "maxLength": MAX_NAME})]
Amount = Annotated[int, Field(description="Minor units.", json_schema_extra={"minimum": 1, "maximum": MAX_PRICE})]
Currency = Annotated[str, Field(description="ISO 4217.", json_schema_extra={"pattern": f"^{CURRENCY.pattern}$"})]
Stock = Annotated[
    int,
    Field(
        description="Pieces on hand, reserved ones included.", json_schema_extra={"minimum": 0, "maximum": MAX_STOCK}
    ),
]


class NewPrice(BaseModel):
    model_config = taken_like(PRICE)

    amount: Amount
    currency: Currency


class ProductDetails(BaseModel):
    model_config = taken_like({"name": "Enamel mug 350 ml", "price": PRICE, "stock": 40})

    name: Name
    price: NewPrice
    stock: Stock


class ProductView(BaseModel):
    model_config = like(PRODUCT)

    sku: str
    name: str
    price: Price
    available: int


class ProductPage(BaseModel):
    model_config = like({"items": [PRODUCT], "next_cursor": "MUG-350"})

    items: list[ProductView]
    next_cursor: str | None
