"""Read your own writes: a request with Min-Position sees that position. The catalog is read page by page."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx

from tests.e2e.shop import CHECKOUT, Product, Shop, new_sku, open_cart, price, put_in, put_product
from tests.e2e.shop_api.problem import problem

ELSEWHERE = "min-position-elsewhere"


def test_a_changed_price_is_seen_by_a_read_that_names_its_position(operator: httpx.Client, ann: httpx.Client) -> None:
    product = put_product(operator, new_sku(), 1000)
    for cents in range(1001, 1011):
        product = put_product(operator, product.sku, cents)
        shown = ann.get(f"/v1/products/{product.sku}", headers={"Min-Position": product.position}).json()
        assert shown["price"] == price(cents)
        path = open_cart(ann)
        assert put_in(ann, path, product).json()["lines"][0]["unit_price"] == price(cents)


def test_a_position_not_reached_in_time_is_a_gateway_timeout(ann: httpx.Client, cart: str, mug: Product) -> None:
    future = {"Min-Position": f"stock:{mug.sku}@999999"}
    problem(ann.get(f"/v1/products/{mug.sku}", headers=future), 504, "position-not-reached")
    line = {"sku": mug.sku, "quantity": 1}
    problem(ann.post(f"{cart}/items", json=line, headers=future), 504, "position-not-reached")
    assert ann.get(cart).json()["version"] == 2


def test_a_price_changed_before_checkout_is_refused_and_can_be_accepted(
    operator: httpx.Client, ann: httpx.Client
) -> None:
    product = put_product(operator, new_sku(), 1190)
    path = open_cart(ann)
    put_in(ann, path, product, 2)
    dearer = {"Min-Position": put_product(operator, product.sku, 1290).position}
    refusal = problem(ann.post(f"{path}/checkout", json=CHECKOUT, headers=dearer), 409, "price-changed")
    assert "12.90 EUR" in refusal["detail"]
    assert "11.90 EUR" in refusal["detail"]
    taken = ann.put(f"{path}/items/{product.sku}", json={"quantity": 2}, headers=dearer)
    assert taken.json()["total"] == price(2580)
    assert ann.post(f"{path}/checkout", json=CHECKOUT, headers=dearer).status_code == 202


def test_the_catalog_is_paged_without_gaps_and_shows_no_withdrawn_product(shop: Shop, operator: httpx.Client) -> None:
    products = [put_product(operator, new_sku(), 100) for _ in range(5)]
    gone = products.pop()
    withdrawn = operator.delete(f"/v1/products/{gone.sku}")
    with shop.client() as anyone:
        headers = {"Min-Position": withdrawn.headers["Event-Position"]}
        problem(anyone.get(f"/v1/products/{gone.sku}", headers=headers), 404, "product-unknown")
        seen: list[str] = []
        parameters: dict[str, Any] = {"limit": 2}
        while True:
            page = anyone.get("/v1/products", params=parameters, headers={"Min-Position": products[-1].position}).json()
            seen += [item["sku"] for item in page["items"]]
            assert len(page["items"]) <= 2
            if page["next_cursor"] is None:
                break
            parameters["cursor"] = page["next_cursor"]
    assert seen == sorted(set(seen))
    assert {product.sku for product in products} <= set(seen)
    assert gone.sku not in seen


def test_a_position_that_can_never_be_shown_is_refused_at_once(
    shop: Shop, ann: httpx.Client, cart: str, mug: Product
) -> None:
    """The refusal comes at once, not after the timeout."""
    start = time.monotonic()
    others = open_cart(ann).replace("/v1/carts/", "cart:")
    for position in (f"{others}@1", "order:7@1", "moon:7@1"):
        named = {"Min-Position": position}
        problem(ann.get(cart, headers=named), 400, ELSEWHERE)
        problem(ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 1}, headers=named), 400, ELSEWHERE)
        problem(ann.get(f"/v1/products/{mug.sku}", headers=named), 400, ELSEWHERE)
    assert time.monotonic() - start < 6


def test_a_stranger_does_not_get_to_wait_for_a_cart(shop: Shop, cart: str) -> None:
    start = time.monotonic()
    with shop.guest() as mallory:
        for version in (1, 999):
            named = {"Min-Position": f"{cart.replace('/v1/carts/', 'cart:')}@{version}"}
            problem(mallory.get(cart, headers=named), 404, "cart-unknown")
            problem(mallory.post(f"{cart}/checkout", json=CHECKOUT, headers=named), 404, "cart-unknown")
    assert time.monotonic() - start < 6, "the time tells a stranger that there is such a cart and which version it has"


def test_every_write_waits_for_the_position_it_is_given(
    shop: Shop, operator: httpx.Client, ann: httpx.Client, cart: str, mug: Product
) -> None:
    """A position that is not reached stops the write, so the header was not ignored."""
    product, payment_id = f"/v1/products/{mug.sku}", uuid4()
    payment, payment_stream = f"/v1/payments/{payment_id}", f"payment:{payment_id}"
    details = {"name": "Mug", "price": price(1190), "stock": 1}
    with shop.staff("support") as support:
        writes: list[tuple[httpx.Client, str, str, str, Any]] = [
            (ann, "DELETE", f"{cart}/items/{mug.sku}", cart.replace("/v1/carts/", "cart:"), None),
            (operator, "PUT", product, f"stock:{mug.sku}", details),
            (operator, "DELETE", product, f"stock:{mug.sku}", None),
            (support, "POST", f"{payment}/refund", payment_stream, None),
            (
                support,
                "POST",
                f"{payment}/review",
                payment_stream,
                {"decision": "reject"},
            ),
        ]
        before = shop.written()
        with ThreadPoolExecutor() as pool:  # all at once, because each waits for its timeout
            tried = list(pool.map(lambda write: _with_positions(*write), writes))
        for not_reached, elsewhere in tried:
            problem(not_reached, 504, "position-not-reached")
            problem(elsewhere, 400, ELSEWHERE)
        assert shop.written() == before


def _with_positions(
    client: httpx.Client, method: str, path: str, stream: str, body: Any
) -> tuple[httpx.Response, httpx.Response]:
    """Sends a write with a position that its stream never reaches, and with one of a stream that it never shows."""
    future, elsewhere = (
        client.request(method, path, json=body, headers={"Min-Position": f"{it}@999999"}) for it in (stream, "moon:7")
    )
    return future, elsewhere


def test_a_write_that_has_reached_its_position_is_carried_out(ann: httpx.Client, cart: str, mug: Product) -> None:
    seen = {"Min-Position": ann.get(cart).headers["Event-Position"]}
    assert ann.delete(f"{cart}/items/{mug.sku}", headers=seen).json()["lines"] == []
