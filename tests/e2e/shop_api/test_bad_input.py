"""Bad input is refused with a specific problem, and nothing is written."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.shop import CHECKOUT, Product, open_cart, price
from tests.e2e.shop_api.problem import problem

JSON = {"Content-Type": "application/json"}


def line(quantity: Any, sku: Any = None) -> Callable[[Product], bytes]:
    return lambda mug: json.dumps({"sku": mug.sku if sku is None else sku, "quantity": quantity}).encode()


def raw(content: bytes) -> Callable[[Product], bytes]:
    return lambda _mug: content


BAD_ITEMS: dict[str, tuple[Callable[[Product], bytes], int, str]] = {
    "an unknown product": (line(1, "NO-SUCH-MUG"), 404, "product-unknown"),
    "a quantity of zero": (line(0), 422, "invalid"),
    "a negative quantity": (line(-1), 422, "invalid"),
    "a hundred": (line(100), 422, "invalid"),
    "more than the cart may hold with what it has": (line(99), 422, "quantity-out-of-range"),
    "a huge quantity": (line(10**30), 422, "invalid"),
    "half a mug": (line(1.5), 422, "invalid"),
    "a word for a quantity": (line("many"), 422, "invalid"),
    "a number in quotes": (line("1"), 422, "invalid"),
    "no quantity": (lambda mug: json.dumps({"sku": mug.sku}).encode(), 422, "invalid"),
    "a null": (line(None), 422, "invalid"),
    "a number for a SKU": (line(1, 7), 422, "invalid"),
    "a SKU without end": (line(1, "M" * 10_000), 422, "invalid"),
    "a SKU with a NUL": (line(1, "MUG\0"), 422, "invalid"),
    "a SKU with half a surrogate": (raw(rb'{"sku": "\ud800", "quantity": 1}'), 400, "json-invalid"),
    "not JSON": (raw(b"sku=MUG"), 400, "json-invalid"),
    "nothing": (raw(b""), 400, "json-invalid"),
    "JSON that was cut off": (raw(b'{"sku": "MUG'), 400, "json-invalid"),
    "not even text": (raw(b"\xff\xfe"), 400, "json-invalid"),
    "a list": (raw(b"[1, 2]"), 422, "invalid"),
    "ten thousand brackets": (raw(b"[" * 10_000), 400, "json-invalid"),
    "a number of ten thousand digits": (
        raw(b'{"sku": "MUG", "quantity": ' + b"9" * 10_000 + b"}"),
        400,
        "json-invalid",
    ),
    "too large": (raw(b'{"sku": "' + b"M" * 70_000 + b'", "quantity": 1}'), 413, "body-too-large"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("kind", BAD_ITEMS)
def test_an_invalid_item_is_refused_and_nothing_is_written(
    ann: httpx.Client, cart: str, mug: Product, kind: str
) -> None:
    content, status, code = BAD_ITEMS[kind]
    problem(ann.post(f"{cart}/items", content=content(mug), headers=JSON), status, code)


@pytest.mark.usefixtures("nothing_written")
def test_a_body_without_a_length_is_refused_once_it_becomes_too_large(ann: httpx.Client, cart: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    problem(ann.post(f"{cart}/items", content=endless(), headers=JSON), 413, "body-too-large")


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"If-Match": '"1"'}, 412, "version-stale"),
        ({"If-Match": "yesterday"}, 400, "if-match-invalid"),
        ({"If-Match": '"99999999999999999999"'}, 400, "if-match-invalid"),
        ({"Min-Position": "somewhere"}, 400, "min-position-invalid"),
        ({"Idempotency-Key": "k" * 201}, 400, "idempotency-key-invalid"),
        ({"Idempotency-Key": ""}, 400, "idempotency-key-invalid"),
        ({"Idempotency-Key": "two words"}, 400, "idempotency-key-invalid"),
    ],
    ids=str,
)
def test_a_header_that_is_invalid_or_stale_is_refused(
    ann: httpx.Client, cart: str, mug: Product, headers: dict[str, str], status: int, code: str
) -> None:
    answer = ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 1}, headers=headers)
    problem(answer, status, code)


BAD_PRODUCTS: dict[str, tuple[str, Any, str]] = {
    "no price": ("MUG-1", {"name": "Mug", "stock": 1}, "invalid"),
    "for nothing": ("MUG-1", {"name": "Mug", "price": price(0), "stock": 1}, "price-invalid"),
    "a price without end": ("MUG-1", {"name": "Mug", "price": price(10**25), "stock": 1}, "price-invalid"),
    "a currency that is none": ("MUG-1", {"name": "Mug", "price": price(1, "euro"), "stock": 1}, "currency-invalid"),
    "fewer than none": ("MUG-1", {"name": "Mug", "price": price(1), "stock": -1}, "stock-negative"),
    "more than can be": ("MUG-1", {"name": "Mug", "price": price(1), "stock": 10**25}, "stock-too-large"),
    "no name": ("MUG-1", {"name": " ", "price": price(1), "stock": 1}, "name-empty"),
    "a name with a NUL": ("MUG-1", {"name": "M\0g", "price": price(1), "stock": 1}, "name-unprintable"),
    "a SKU in small letters": ("mug", {"name": "Mug", "price": price(1), "stock": 1}, "sku-invalid"),
    "a SKU with a NUL": ("MUG%00", {"name": "Mug", "price": price(1), "stock": 1}, "invalid"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("kind", BAD_PRODUCTS)
def test_an_invalid_product_is_refused(operator: httpx.Client, kind: str) -> None:
    sku, details, code = BAD_PRODUCTS[kind]
    problem(operator.put(f"/v1/products/{sku}", json=details), 422, code)


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    "change",
    [
        {"payment_token": "4111 1111 1111 1111"},
        {"shipping": {"method": "pigeon", "name": "Ann", "address": "Lane"}},
        {"shipping": {"method": "express", "name": "", "address": "Lane"}},
        {"shipping": {"method": "express", "name": "Ann", "address": "L" * 501}},
        {"shipping": None},
    ],
    ids=str,
)
def test_an_invalid_checkout_is_refused(ann: httpx.Client, cart: str, change: dict[str, Any]) -> None:
    problem(ann.post(f"{cart}/checkout", json=CHECKOUT | change), 422, "invalid")


def test_an_empty_cart_is_not_checked_out(ann: httpx.Client) -> None:
    problem(ann.post(f"{open_cart(ann)}/checkout", json=CHECKOUT), 409, "cart-empty")


def test_an_unknown_path_method_or_id_is_answered_with_a_problem(ann: httpx.Client, cart: str) -> None:
    problem(ann.get("/v1/nothing"), 404, "not-found")
    problem(ann.get(f"{cart}/"), 404, "not-found")
    problem(ann.patch(cart), 405, "method-not-allowed")
    assert ann.post("/v1/products/MUG-1").headers["Allow"] == "DELETE, GET, PUT"
    problem(ann.get("/v1/carts/no-uuid"), 422, "invalid")
    problem(ann.get("/v1/products", params={"limit": 10**9}), 422, "invalid")
