"""Reading orders: owners and support see them, positions are waited for, and strangers learn nothing."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from uuid_utils import uuid7

from tests.e2e.shop import CHECKOUT, Shop
from tests.e2e.shop_api.problem import problem

PATIENCE = 6.0
"""Seconds this shop waits for a position. An answer that has nothing to wait for is faster."""


@pytest.fixture
def checkout(ann: httpx.Client, cart: str) -> httpx.Response:
    answer = ann.post(f"{cart}/checkout", json=CHECKOUT)
    assert answer.status_code == 202, answer.text
    return answer


@pytest.fixture
def order(checkout: httpx.Response) -> str:
    """Returns the path of the order."""
    return str(checkout.headers["Location"])


def test_a_read_right_after_the_checkout_waits_for_the_order(
    ann: httpx.Client, checkout: httpx.Response, order: str
) -> None:
    seen = {"Min-Position": checkout.headers["Event-Position"]}
    for path in (order, f"{order}/events"):
        assert ann.get(path, headers=seen).status_code == 200
    listed = ann.get("/v1/orders", headers=seen).json()["items"]
    assert [f"/v1/orders/{item['order_id']}" for item in listed] == [order]


def test_name_and_address_are_in_the_order_and_neither_in_lists_nor_in_stored_answers(
    shop: Shop, ann: httpx.Client, checkout: httpx.Response, order: str
) -> None:
    expected = CHECKOUT["shipping"] | {"erased": False}
    seen = {"Min-Position": checkout.headers["Event-Position"]}
    with shop.staff("support") as support, shop.staff("operator") as operator:
        for reader in (ann, support):
            assert reader.get(order, headers=seen).json()["shipping"] == expected
        problem(operator.get(order), 404, "order-unknown")
    listed = ann.get("/v1/orders", headers=seen)
    cancelled = ann.post(f"{order}/cancel", headers={"Idempotency-Key": str(uuid7())})
    assert (listed.status_code, cancelled.status_code) == (200, 200)
    assert "Mill Lane" not in listed.text + cancelled.text


def test_a_stranger_learns_nothing_from_how_long_an_order_takes_to_be_denied(shop: Shop, order: str) -> None:
    with shop.guest() as mallory, ThreadPoolExecutor() as at_once:
        theirs, none = at_once.map(lambda path: timed(mallory, path), [order, f"/v1/orders/{uuid7()}"])
    problem(theirs[0], 404, "order-unknown")
    assert theirs[0].content == none[0].content
    assert abs(theirs[1] - none[1]) < 0.5, "the time tells a stranger whether there is such an order"


@pytest.mark.parametrize("position", ["payment:{id}@1", "stock:MUG@1", "cart:{id}@1", "moon:{id}@1"])
def test_a_position_that_no_order_shows_is_refused_at_once(ann: httpx.Client, order: str, position: str) -> None:
    named = {"Min-Position": position.format(id=uuid7())}
    answer, seconds = timed(ann, order, headers=named)
    problem(answer, 400, "min-position-elsewhere")
    assert seconds < PATIENCE


def test_a_last_event_id_that_is_no_number_is_refused(ann: httpx.Client, order: str) -> None:
    for last in (b"x", b"-1", "²".encode("latin-1"), b"9" * 30):
        problem(ann.get(f"{order}/stream", headers={b"Last-Event-ID": last}), 400, "last-event-id-invalid")


def timed(client: httpx.Client, path: str, **more: Any) -> tuple[httpx.Response, float]:
    start = time.monotonic()
    return client.get(path, **more), time.monotonic() - start
