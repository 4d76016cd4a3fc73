"""An idempotency key gives the same answer and one effect, and a stale If-Match is refused."""

from concurrent.futures import ThreadPoolExecutor

import httpx
from uuid_utils import uuid7

from tests.e2e.shop import Product, Shop, new_sku, price
from tests.e2e.shop_api.problem import problem


def test_a_write_based_on_an_older_cart_is_refused(ann: httpx.Client, cart: str, mug: Product) -> None:
    seen = ann.get(cart).headers["ETag"]
    line = {"sku": mug.sku, "quantity": 1}
    assert ann.post(f"{cart}/items", json=line, headers={"If-Match": seen}).status_code == 200
    stale = problem(ann.post(f"{cart}/items", json=line, headers={"If-Match": seen}), 412, "version-stale")
    assert stale["version"] == 3
    assert ann.get(cart).json()["lines"][0]["quantity"] == 2
    assert ann.post(f"{cart}/items", json=line, headers={"If-Match": "*"}).status_code == 200
    assert ann.post(f"{cart}/items", json=line, headers={"If-Match": "4"}).status_code == 200, "quotes or not"


def test_a_product_is_listed_only_if_there_is_none_yet(operator: httpx.Client) -> None:
    sku = new_sku()
    details = {"name": "Mug", "price": price(100), "stock": 1}
    assert operator.put(f"/v1/products/{sku}", json=details, headers={"If-None-Match": "*"}).status_code == 200
    problem(operator.put(f"/v1/products/{sku}", json=details, headers={"If-None-Match": "*"}), 412, "version-stale")


def test_the_same_key_and_body_is_the_same_answer_and_one_effect(ann: httpx.Client, cart: str, mug: Product) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    line = {"sku": mug.sku, "quantity": 3}
    first, again = (ann.post(f"{cart}/items", json=line, headers=key) for _ in range(2))
    assert (first.status_code, first.content) == (again.status_code, again.content) == (200, first.content)
    for name in ("ETag", "Event-Position", "Content-Type"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert ann.get(cart).json()["lines"][0]["quantity"] == 4


def test_twenty_clients_with_one_key_open_one_cart(shop: Shop, ann: httpx.Client) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    before = shop.written()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ann.post("/v1/carts", headers=key), range(20)))
    assert {(answer.status_code, answer.content, answer.headers["Location"]) for answer in answers} == {
        (201, answers[0].content, answers[0].headers["Location"])
    }
    after = shop.written()
    assert {name: after[name] - before[name] for name in after} == {
        "cart events": 1,
        "cart answers": 1,
        "catalog events": 0,
        "catalog answers": 0,
    }


def test_a_refusal_is_repeated_word_for_word(ann: httpx.Client, cart: str) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    first, again = (
        ann.post(f"{cart}/items", json={"sku": "NO-SUCH-MUG", "quantity": 1}, headers=key) for _ in range(2)
    )
    problem(first, 404, "product-unknown")
    problem(again, 404, "product-unknown")
    assert first.content == again.content


def test_the_key_of_one_customer_does_not_open_the_data_of_another(shop: Shop, ann: httpx.Client) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    with shop.guest() as bob:
        assert ann.post("/v1/carts", headers=key).json() != bob.post("/v1/carts", headers=key).json()


def test_a_key_used_again_with_another_body_is_refused(shop: Shop, ann: httpx.Client, cart: str, mug: Product) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 1}, headers=key)
    before = shop.written()
    other = ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 2}, headers=key)
    problem(other, 422, "idempotency-key-reused")
    elsewhere = ann.post("/v1/carts", headers=key)
    problem(elsewhere, 422, "idempotency-key-reused")
    assert shop.written() == before
