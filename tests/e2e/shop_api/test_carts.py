"""The life of a cart, and the cart as it was at each moment."""

from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils import uuid7

from tests.e2e.shop import CHECKOUT, Shop, new_sku, price, put_in, put_product, versions
from tests.e2e.shop_api.problem import problem


def test_a_cart_from_its_opening_to_its_checkout_and_every_moment_in_between(
    shop: Shop, operator: httpx.Client, ann: httpx.Client
) -> None:
    mug, pot = put_product(operator, new_sku(), 1190), put_product(operator, new_sku(), 3990)
    opened = ann.post("/v1/carts")
    assert opened.status_code == 201
    path = opened.headers["Location"]
    cart_id = opened.json()["cart_id"]
    assert path == f"/v1/carts/{cart_id}"
    UUID(cart_id)
    steps = [
        opened,
        put_in(ann, path, mug, 2),
        put_in(ann, path, pot),
        ann.put(f"{path}/items/{mug.sku}", json={"quantity": 5}),
        ann.delete(f"{path}/items/{pot.sku}"),
    ]
    for version, answer in enumerate(steps, 1):
        assert answer.json()["version"] == version
        assert answer.headers["ETag"] == f'"{version}"'
        assert answer.headers["Event-Position"] == f"cart:{cart_id}@{version}"
    assert steps[2].json() == {
        "cart_id": cart_id,
        "customer_id": opened.json()["customer_id"],
        "status": "open",
        "version": 3,
        "lines": [
            {"sku": mug.sku, "name": "Enamel mug ☕", "quantity": 2, "unit_price": price(1190)},
            {"sku": pot.sku, "name": "Enamel mug ☕", "quantity": 1, "unit_price": price(3990)},
        ],
        "total": price(2 * 1190 + 3990),
    }

    checked_out = ann.post(f"{path}/checkout", json=CHECKOUT)
    assert checked_out.status_code == 202
    assert checked_out.headers["Location"] == f"/v1/orders/{checked_out.json()['order_id']}"
    now = ann.get(path)
    assert (now.json()["status"], now.json()["version"], now.json()["total"]) == ("checked_out", 6, price(5950))
    problem(ann.post(f"{path}/items", json={"sku": mug.sku, "quantity": 1}), 409, "cart-checked-out")

    times = [
        row["time"] for row in shop.fetch("cart", "SELECT time FROM events WHERE stream_id = $1", f"cart:{cart_id}")
    ]
    for version, answer in enumerate(steps, 1):
        assert ann.get(path, params={"version": version}).json() == answer.json()
        assert ann.get(path, params={"at": times[version - 1].isoformat()}).json() == answer.json()
    problem(ann.get(path, params={"at": "2020-01-01T00:00:00Z"}), 404, "cart-unknown")


def test_a_repeated_checkout_leads_to_the_same_order(shop: Shop, ann: httpx.Client, cart: str) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    first = ann.post(f"{cart}/checkout", json=CHECKOUT, headers=key)
    again = ann.post(f"{cart}/checkout", json=CHECKOUT, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    problem(ann.post(f"{cart}/checkout", json=CHECKOUT), 409, "cart-checked-out")


def test_name_and_address_of_the_customer_are_nowhere_in_clear(shop: Shop, ann: httpx.Client, cart: str) -> None:
    ann.post(f"{cart}/checkout", json=CHECKOUT)
    shop.wait_until_published()
    stream_id = cart.replace("/v1/carts/", "cart:")
    stored = b"".join(row["value"] for row in shop.fetch("cart", "SELECT value FROM events"))
    sent = b"".join(r.value or b"" for r in shop.topic("cart.events"))
    assert versions(shop.topic("cart.events"), stream_id)[-1] == 3
    for secret in (b"Ann Example", b"Mill Lane", b"Oldtown"):
        assert secret not in stored
        assert secret not in sent


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"version": 0}, 422, "invalid"),
        ({"version": -1}, 422, "invalid"),
        ({"version": 3}, 404, "version-unknown"),
        ({"version": 10**18}, 404, "version-unknown"),
        ({"version": 10**30}, 404, "version-unknown"),
        ({"version": "first"}, 422, "invalid"),
        ({"at": "noon"}, 422, "invalid"),
        ({"at": "0001-01-01T00:00:00+23:59"}, 404, "cart-unknown"),
        ({"at": "-5000-01-01T00:00:00Z"}, 422, "invalid"),
    ],
    ids=str,
)
def test_a_version_or_moment_that_never_was_is_refused(
    ann: httpx.Client, cart: str, query: dict[str, Any], status: int, code: str
) -> None:
    problem(ann.get(cart, params=query), status, code)


def test_a_moment_far_in_the_future_shows_the_present(ann: httpx.Client, cart: str) -> None:
    assert ann.get(cart, params={"at": "9999-12-31T23:59:59-23:59"}).content == ann.get(cart).content
