"""Request and response bodies of the catalog API, with their examples."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from services.catalog.decider import CURRENCY, MAX_NAME, MAX_PRICE, MAX_SKU, MAX_STOCK, SKU, Stock, Unlisted
from services.common.bodies import Price, body_of_row, price_body
from services.common.examples import PRICE, request_body, response_body
from services.common.money import Money
from shared.decider import Versioned
from shared.http.openapi import refusal

PRODUCT = {"sku": "MUG-350", "name": "Enamel mug 350 ml", "price": PRICE, "available": 38}
UNKNOWN = refusal(404, "product-unknown", "There is no product MUG-350.")
RESERVED = refusal(409, "stock-below-reserved", "2 pieces of MUG-350 are reserved for orders: fewer cannot be on hand.")


# OpenAPI states these bounds; the decider enforces them, because its refusal says which one was broken.
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
Pieces = Annotated[
    int,
    Field(
        description="Pieces on hand, reserved ones included.", json_schema_extra={"minimum": 0, "maximum": MAX_STOCK}
    ),
]


class NewPrice(BaseModel):
    model_config = request_body(PRICE)

    amount: Amount
    currency: Currency


class ProductDetails(BaseModel):
    model_config = request_body({"name": "Enamel mug 350 ml", "price": PRICE, "stock": 40})

    name: Name
    price: NewPrice
    stock: Pieces


class ProductBody(BaseModel):
    model_config = response_body(PRODUCT)

    sku: str
    name: str
    price: Price
    available: int


class ProductPage(BaseModel):
    model_config = response_body({"items": [PRODUCT], "next_cursor": "MUG-350"})

    items: list[ProductBody]
    next_cursor: str | None


def product_body(found: Versioned[Stock]) -> dict[str, Any]:
    """Returns a `ProductBody` of the product's state."""
    product = found.state
    assert not isinstance(product, Unlisted)
    return {
        "sku": product.sku,
        "name": product.name,
        "price": price_body(product.price),
        "available": product.available,
    }


def product_body_of_row(row: Any) -> dict[str, Any]:
    """Returns a `ProductBody` of a row of the read model."""
    price = price_body(Money(row["price"], row["currency"]))
    return body_of_row(ProductBody, row, price=price, available=max(row["available"], 0))
