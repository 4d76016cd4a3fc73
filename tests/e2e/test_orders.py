"""A cart becomes a paid order or is undone completely, through every service, Kafka and the provider's ledger."""

import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import orjson
import pytest

from infra.local.processes.ports import free_ports
from tests.e2e.provider import moved, net, provider
from tests.e2e.shop import (
    CHECKOUT,
    Product,
    Shop,
    buy,
    new_sku,
    open_cart,
    order,
    put_in,
    put_product,
    settled,
    started,
)
from tests.till import eventually


@pytest.fixture(scope="module")
def own_environment(stack_environment: dict[str, str], stack: object) -> dict[str, str]:
    return stack_environment | {
        "TILL_PSP_PORT": str(free_ports(1)[0]),
        "TILL_PSP_LATENCY_MS": "5",
        "TILL_PSP_LATE_SECONDS": "9",
        "TILL_PSP_TIMEOUT": "3",
    }


@pytest.fixture(scope="module")
def psp(own_environment: dict[str, str]) -> Iterator[str]:
    with provider(own_environment) as url:
        yield url


@pytest.fixture(scope="module")
def shop(own_environment: dict[str, str], psp: str) -> Iterator[Shop]:
    with started(own_environment) as shop:
        yield shop
        assert shop.stop() == 0, shop.log.read_text()


@pytest.fixture(scope="module")
def operator(shop: Shop) -> Iterator[httpx.Client]:
    with shop.staff("operator") as operator:
        yield operator


@pytest.fixture(scope="module")
def support(shop: Shop) -> Iterator[httpx.Client]:
    with shop.staff("support") as support:
        yield support


@pytest.fixture
def ann(shop: Shop) -> Iterator[httpx.Client]:
    with shop.guest() as ann:
        yield ann


@pytest.mark.parametrize(
    ("token", "status", "reason", "movements"),
    [
        ("tok_ok", "confirmed", None, ["authorized", "captured"]),
        ("tok_flaky", "confirmed", None, ["authorized", "captured"]),
        ("tok_timeout", "confirmed", None, ["authorized", "captured"]),
        ("tok_declined", "cancelled", "payment_declined", ["declined"]),
        ("tok_insufficient_funds", "cancelled", "payment_declined", ["declined"]),
    ],
)
def test_each_test_token_leads_to_its_outcome_and_moves_money_accordingly(
    operator: httpx.Client,
    ann: httpx.Client,
    psp: str,
    token: str,
    status: str,
    reason: str | None,
    movements: list[str],
) -> None:
    mug = put_product(operator, new_sku(), 1190, stock=5)
    bought = settled(ann, buy(ann, mug, 2, token))
    assert (bought["status"], bought["reason"]) == (status, reason)
    assert bought["total"] == {"amount": 2380, "currency": "EUR"}
    eventually(lambda: moved(psp, bought["payment_id"]) == movements, f"the ledger says {movements}", 20)
    left = 3 if status == "confirmed" else 5
    eventually(lambda: _has_left(ann, mug, left), f"{left} pieces are left")


def test_an_order_for_more_than_there_is_takes_nothing(operator: httpx.Client, ann: httpx.Client) -> None:
    mug, rare = put_product(operator, new_sku(), stock=9), put_product(operator, new_sku(), stock=1)
    cart = open_cart(ann)
    put_in(ann, cart, mug, 3)
    put_in(ann, cart, rare, 2)
    path = ann.post(f"{cart}/checkout", json=CHECKOUT).headers["Location"]
    bought = settled(ann, path)
    assert (bought["status"], bought["reason"], bought["payment_id"]) == ("cancelled", "out_of_stock", None)
    for product, left in ((mug, 9), (rare, 1)):
        eventually(partial(_has_left, ann, product, left), "the reserved pieces are available again")


def _has_left(anyone: httpx.Client, product: Product, pieces: int) -> bool:
    return bool(anyone.get(f"/v1/products/{product.sku}").json()["available"] == pieces)


def test_a_card_number_is_refused_wherever_it_is_written(operator: httpx.Client, ann: httpx.Client) -> None:
    cart = open_cart(ann)
    put_in(ann, cart, put_product(operator, new_sku(), stock=5))
    shipping = CHECKOUT["shipping"] | {"address": "please charge 4111 1111 1111 1111"}
    answer = ann.post(f"{cart}/checkout", json=CHECKOUT | {"shipping": shipping})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:till:problem:card-number")
    assert "4111" not in answer.text
    assert ann.get(cart).json()["status"] == "open"


def test_an_approval_that_arrives_after_the_cancel_is_undone(
    operator: httpx.Client, ann: httpx.Client, psp: str
) -> None:
    path = buy(ann, put_product(operator, new_sku(), stock=5), token="tok_timeout")
    eventually(lambda: ann.get(path).json()["status"] == "reserved", "the payment is requested")
    cancelled = ann.post(f"{path}/cancel")
    assert cancelled.status_code == 200, cancelled.text
    assert (cancelled.json()["status"], cancelled.json()["reason"]) == ("cancelled", "customer")
    payment_id = order(ann, path)["payment_id"]
    eventually(lambda: moved(psp, payment_id) == ["authorized", "voided"], "the authorisation is voided", 20)


def test_a_confirmed_order_is_cancelled_by_support_alone_and_refunded(
    operator: httpx.Client, ann: httpx.Client, support: httpx.Client, psp: str
) -> None:
    mug = put_product(operator, new_sku(), stock=5)
    path = buy(ann, mug, 2)
    payment_id = settled(ann, path)["payment_id"]
    refused = ann.post(f"{path}/cancel")
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:till:problem:order-confirmed")
    eventually(lambda: moved(psp, payment_id) == ["authorized", "captured"], "it is captured")
    assert support.post(f"{path}/cancel").status_code == 200
    eventually(lambda: moved(psp, payment_id) == ["authorized", "captured", "refunded"], "it is refunded", 20)
    assert order(ann, path)["status"] == "cancelled"
    eventually(lambda: _has_left(ann, mug, 5), "what was sold is back on the shelf")


def test_a_refund_by_support_cancels_the_order(
    operator: httpx.Client, ann: httpx.Client, support: httpx.Client, psp: str
) -> None:
    path = buy(ann, put_product(operator, new_sku(), 2500, stock=5))
    payment_id = settled(ann, path)["payment_id"]
    payment = f"/v1/payments/{payment_id}"
    eventually(lambda: ann.get(payment).json()["status"] == "captured", "it is captured")
    assert ann.post(f"{payment}/refund").status_code == 403
    assert support.post(f"{payment}/refund").status_code == 200
    eventually(lambda: ann.get(payment).json()["status"] == "refunded", "it is refunded", 20)
    assert net(psp, [payment_id]) == 0
    eventually(lambda: order(ann, path)["status"] == "cancelled", "the order is cancelled")


@pytest.mark.parametrize(
    ("decision", "status", "reason"), [("approve", "confirmed", None), ("reject", "cancelled", "fraud")]
)
def test_a_suspicious_payment_waits_for_a_review(
    operator: httpx.Client,
    ann: httpx.Client,
    support: httpx.Client,
    psp: str,
    decision: str,
    status: str,
    reason: str | None,
) -> None:
    path = buy(ann, put_product(operator, new_sku(), 900_000, stock=5))
    held = eventually(lambda: (it := ann.get(path).json())["status"] == "in_review" and it, "it is held")
    payment = f"/v1/payments/{held['payment_id']}"
    assert moved(psp, held["payment_id"]) == []
    assert ann.post(f"{payment}/review", json={"decision": "approve"}).status_code == 403
    assert support.post(f"{payment}/review", json={"decision": decision}).status_code == 200
    bought = settled(ann, path)
    assert (bought["status"], bought["reason"]) == (status, reason)
    assert support.post(f"{payment}/review", json={"decision": decision}).status_code == 409


def test_status_changes_are_streamed_and_resume_after_a_broken_connection(
    operator: httpx.Client, ann: httpx.Client
) -> None:
    path = buy(ann, put_product(operator, new_sku(), stock=5))
    eventually(lambda: ann.get(path).is_success, "it is placed")
    changes = _stream(ann, path)
    assert [data["status"] for _, data in changes] == ["placed", "reserved", "confirmed"]
    first_id = changes[0][0]
    assert _stream(ann, path, {"Last-Event-ID": first_id}) == changes[1:]
    assert ann.get(f"{path}/stream", headers={"Last-Event-ID": "x"}).status_code == 400


def _stream(guest: httpx.Client, path: str, headers: dict[str, str] | None = None) -> list[tuple[str, dict[str, Any]]]:
    changes, last_id = [], ""
    with guest.stream("GET", f"{path}/stream", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():  # ends by itself at a final status
            if line.startswith("id: "):
                last_id = line[4:]
            elif line.startswith("data: "):
                changes.append((last_id, orjson.loads(line[6:])))
    return changes


def test_the_timeline_names_actor_and_cause_of_every_event(operator: httpx.Client, ann: httpx.Client) -> None:
    path = buy(ann, put_product(operator, new_sku(), stock=5))
    settled(ann, path)

    def complete() -> Any:
        items = ann.get(f"{path}/events").json()["items"]
        return items if {"PaymentCaptured", "StockSold"} <= {item["type"] for item in items} else None

    items = eventually(complete, "the timeline is complete")
    assert [item["type"] for item in items if item["service"] == "order"] == [
        "OrderPlaced",
        "LineReserved",
        "PaymentRequested",
        "OrderConfirmed",
    ]
    assert Counter(item["service"] for item in items) == {"cart": 3, "order": 4, "catalog": 2, "payment": 4}
    assert _causes(items, "PaymentCaptured") == [
        "CaptureRequested",
        "OrderConfirmed",
        "PaymentAuthorized",
        "AuthorizationRequested",
        "PaymentRequested",
        "StockReserved",
        "OrderPlaced",
        "CartCheckedOut",
    ]
    assert _causes(items, "StockSold")[0] == "OrderConfirmed"


def _causes(items: list[dict[str, Any]], event_type: str) -> list[str]:
    """Follows the causes back to the first event, which a request caused."""
    by_id = {item["id"]: item for item in items}
    [effect] = [item for item in items if item["type"] == event_type]
    causes = []
    while cause := by_id.get(effect["caused_by"]):
        causes.append(cause["type"])
        effect = cause
    assert not effect["actor"].startswith(("service:", "system:")), f"nobody caused {effect['type']}"
    return causes


def test_orders_are_listed_latest_first_and_only_ones_own(
    shop: Shop, operator: httpx.Client, ann: httpx.Client
) -> None:
    mug = put_product(operator, new_sku(), stock=50)
    paths = []
    for _ in range(3):  # checkouts that are read together are placed in any order
        paths.append(buy(ann, mug))
        settled(ann, paths[-1])
    eventually(lambda: len(ann.get("/v1/orders").json()["items"]) == 3, "the list has them")
    first = ann.get("/v1/orders", params={"limit": 2}).json()
    rest = ann.get("/v1/orders", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    listed = [f"/v1/orders/{item['order_id']}" for item in first["items"] + rest["items"]]
    assert listed == paths[::-1]
    assert rest["next_cursor"] is None
    with shop.guest() as bob:
        assert bob.get("/v1/orders").json()["items"] == []
        for path in (paths[0], f"{paths[0]}/events", f"{paths[0]}/stream"):
            assert bob.get(path).status_code == 404
        assert bob.post(f"{paths[0]}/cancel").status_code == 404


def test_an_order_is_answered_as_it_was_at_a_version_or_a_moment(operator: httpx.Client, ann: httpx.Client) -> None:
    path = buy(ann, put_product(operator, new_sku(), stock=5))
    version = settled(ann, path)["version"]
    assert ann.get(path, params={"version": 1}).json()["status"] == "placed"
    assert ann.get(path, params={"version": version}).json()["status"] == "confirmed"
    assert ann.get(path, params={"at": "2001-01-01T00:00:00Z"}).status_code == 404


def test_of_two_hundred_buyers_exactly_fifty_get_the_fifty_pieces(shop: Shop, operator: httpx.Client, psp: str) -> None:
    hot = put_product(operator, new_sku(), 1000, stock=50)

    def shopper(_: int) -> dict[str, Any]:
        with shop.guest() as guest:
            return settled(guest, buy(guest, hot))

    with ThreadPoolExecutor(20) as crowd:
        orders = list(crowd.map(shopper, range(200)))
    outcomes = Counter((it["status"], it["reason"]) for it in orders)
    assert outcomes == {("confirmed", None): 50, ("cancelled", "out_of_stock"): 150}
    confirmed = [it["payment_id"] for it in orders if it["status"] == "confirmed"]
    eventually(lambda: net(psp, confirmed) == 50_000, "every confirmed order is paid, once", 30)
    with shop.client() as anyone:
        eventually(lambda: _has_left(anyone, hot, 0), "none is left")


def test_a_death_between_the_providers_answer_and_the_record_takes_no_money_twice(
    own_environment: dict[str, str], shop: Shop, psp: str
) -> None:
    assert shop.stop() == 0, shop.log.read_text()
    with started(own_environment, TILL_CRASH_AT="answered by the provider, not recorded") as doomed:
        with doomed.staff("operator") as operator, doomed.guest() as guest:
            path = buy(guest, put_product(operator, new_sku(), stock=5))
            token = guest.headers["Authorization"].removeprefix("Bearer ")
        assert doomed.process.wait(30) == -signal.SIGKILL
    with started(own_environment) as again, again.client(token) as guest:
        bought = settled(guest, path)
        assert bought["status"] == "confirmed"
        expected = ["authorized", "captured"]
        eventually(lambda: moved(psp, bought["payment_id"]) == expected, "authorised once, captured once", 20)
        assert again.stop() == 0
