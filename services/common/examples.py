"""The examples of the API's description, all of one purchase, and how a model is given its own."""

from typing import Any

from pydantic import ConfigDict

CART_ID = "0190b1de-0000-7000-8000-000000000001"
ORDER_ID = "6f1c2d3e-0000-5000-8000-000000000002"
PAYMENT_ID = "6f1c2d3e-0000-5000-8000-000000000003"
CUSTOMER_ID = "0190b1de-0000-7000-8000-000000000004"
PRICE = {"amount": 1290, "currency": "EUR"}
LINE = {"sku": "MUG-350", "name": "Enamel mug 350 ml", "quantity": 2, "unit_price": PRICE}
TOTAL = {"amount": 2580, "currency": "EUR"}


def like(example: Any) -> ConfigDict:
    """Of what is answered."""
    return ConfigDict(json_schema_extra={"examples": [example]})


def taken_like(example: Any) -> ConfigDict:
    """Of a body that is sent, which is taken by its word: "2" is no number."""
    return ConfigDict(json_schema_extra={"examples": [example]}, strict=True)
