"""Example values for the OpenAPI page, all taken from one purchase, and the pydantic configs that attach them."""

from typing import Any

from pydantic import ConfigDict

CART_ID = "0190b1de-0000-7000-8000-000000000001"
ORDER_ID = "6f1c2d3e-0000-5000-8000-000000000002"
PAYMENT_ID = "6f1c2d3e-0000-5000-8000-000000000003"
CUSTOMER_ID = "0190b1de-0000-7000-8000-000000000004"
PRICE = {"amount": 1290, "currency": "EUR"}
LINE = {"sku": "MUG-350", "name": "Enamel mug 350 ml", "quantity": 2, "unit_price": PRICE}
TOTAL = {"amount": 2580, "currency": "EUR"}


def response_body(example: Any) -> ConfigDict:
    """Returns the `model_config` of a body that the shop sends, documented with this example."""
    return ConfigDict(json_schema_extra={"examples": [example]})


def request_body(example: Any) -> ConfigDict:
    """Returns the `model_config` of a body that the shop receives: an example, and strict types ("2" is no number)."""
    return ConfigDict(json_schema_extra={"examples": [example]}, strict=True)
