"""The shop over HTTP, as shoppers, operators and those who mean no good see it."""

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx
import jwt
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from uuid_utils import uuid7

from tests.e2e.shop import CHECKOUT, Product, Shop, new_sku, open_cart, price, put_in, put_product, started, versions
from tests.till import eventually


@pytest.fixture(scope="module")
def operator(shop: Shop) -> Iterator[httpx.Client]:
    with shop.staff("operator") as operator:
        yield operator


@pytest.fixture
def ann(shop: Shop) -> Iterator[httpx.Client]:
    with shop.guest() as ann:
        yield ann


@pytest.fixture(scope="module")
def mug(operator: httpx.Client) -> Product:
    return put_product(operator, new_sku(), 1190)


@pytest.fixture
def cart(ann: httpx.Client, mug: Product) -> str:
    """With one mug in it."""
    path = open_cart(ann)
    put_in(ann, path, mug)
    return path


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """RFC 9457, and nothing of our insides."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"urn:till:problem:{code}", document
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert "Traceback" not in answer.text
    return document


# The life of a cart


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


def test_the_order_of_a_cart_is_the_same_however_often_it_is_asked_for(
    shop: Shop, ann: httpx.Client, cart: str
) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    first = ann.post(f"{cart}/checkout", json=CHECKOUT, headers=key)
    again = ann.post(f"{cart}/checkout", json=CHECKOUT, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    problem(ann.post(f"{cart}/checkout", json=CHECKOUT), 409, "cart-checked-out")


def test_name_and_address_of_the_customer_are_nowhere_in_clear(shop: Shop, ann: httpx.Client, cart: str) -> None:
    ann.post(f"{cart}/checkout", json=CHECKOUT)
    shop.everything_published()
    stream_id = cart.replace("/v1/carts/", "cart:")
    stored = b"".join(row["value"] for row in shop.fetch("cart", "SELECT value FROM events"))
    sent = b"".join(r.value or b"" for r in shop.topic("cart.events"))
    assert versions(shop.topic("cart.events"), stream_id)[-1] == 3
    for secret in (b"Ann Example", b"Mill Lane", b"Oldtown"):
        assert secret not in stored
        assert secret not in sent


# Preconditions


def test_who_has_seen_an_older_cart_is_told_so(ann: httpx.Client, cart: str, mug: Product) -> None:
    seen = ann.get(cart).headers["ETag"]
    line = {"sku": mug.sku, "quantity": 1}
    assert ann.post(f"{cart}/items", json=line, headers={"If-Match": seen}).status_code == 200
    stale = problem(ann.post(f"{cart}/items", json=line, headers={"If-Match": seen}), 412, "version-stale")
    assert stale["version"] == 3
    assert ann.get(cart).json()["lines"][0]["quantity"] == 2
    assert ann.post(f"{cart}/items", json=line, headers={"If-Match": "*"}).status_code == 200


def test_a_product_is_listed_only_if_there_is_none_yet(operator: httpx.Client) -> None:
    sku = new_sku()
    details = {"name": "Mug", "price": price(100), "stock": 1}
    assert operator.put(f"/v1/products/{sku}", json=details, headers={"If-None-Match": "*"}).status_code == 200
    problem(operator.put(f"/v1/products/{sku}", json=details, headers={"If-None-Match": "*"}), 412, "version-stale")


# Idempotency


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


def test_the_key_of_one_customer_is_nothing_to_another(shop: Shop, ann: httpx.Client) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    with shop.guest() as bob:
        assert ann.post("/v1/carts", headers=key).json() != bob.post("/v1/carts", headers=key).json()


# Causality


def test_a_price_that_was_changed_before_is_seen_once_its_position_is_asked_for(
    operator: httpx.Client, ann: httpx.Client
) -> None:
    product = put_product(operator, new_sku(), 1000)
    for cents in range(1001, 1011):
        product = put_product(operator, product.sku, cents)
        shown = ann.get(f"/v1/products/{product.sku}", headers={"Min-Position": product.position}).json()
        assert shown["price"] == price(cents)
        path = open_cart(ann)
        assert put_in(ann, path, product).json()["lines"][0]["unit_price"] == price(cents)


def test_a_position_that_is_not_reached_in_time_is_said_so(ann: httpx.Client, cart: str, mug: Product) -> None:
    future = {"Min-Position": f"stock:{mug.sku}@999999"}
    problem(ann.get(f"/v1/products/{mug.sku}", headers=future), 504, "position-not-reached")
    line = {"sku": mug.sku, "quantity": 1}
    problem(ann.post(f"{cart}/items", json=line, headers=future), 504, "position-not-reached")
    assert ann.get(cart).json()["version"] == 2


def test_a_price_that_changed_before_checkout_is_refused_and_can_be_taken(
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


# Browsing


def test_the_catalogue_is_paged_without_gaps_and_shows_no_withdrawn_product(shop: Shop, operator: httpx.Client) -> None:
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


# Bad input: each its own problem, and nothing is written


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


@pytest.fixture
def nothing_written(shop: Shop, ann: httpx.Client, cart: str) -> Iterator[None]:
    """Around a test: neither an event nor an answer is stored, and the cart is as it was."""
    before, shown = shop.written(), ann.get(cart).content
    yield
    assert shop.written() == before
    assert ann.get(cart).content == shown


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("kind", BAD_ITEMS)
def test_an_item_that_cannot_be_is_refused_and_nothing_is_written(
    ann: httpx.Client, cart: str, mug: Product, kind: str
) -> None:
    content, status, code = BAD_ITEMS[kind]
    problem(ann.post(f"{cart}/items", content=content(mug), headers=JSON), status, code)


@pytest.mark.usefixtures("nothing_written")
def test_a_body_that_does_not_say_how_large_it_is_is_cut_off_where_it_becomes_too_large(
    ann: httpx.Client, cart: str
) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    problem(ann.post(f"{cart}/items", content=endless(), headers=JSON), 413, "body-too-large")


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("POST", "/items", {"sku": "MUG", "quantity": 1}),
        ("PUT", "/items/MUG", {"quantity": 1}),
        ("DELETE", "/items/MUG", None),
        ("POST", "/checkout", CHECKOUT),
    ],
)
def test_the_cart_of_somebody_else_is_as_good_as_none(
    shop: Shop, cart: str, mug: Product, method: str, path: str, body: Any
) -> None:
    with shop.guest() as mallory:
        path = path.replace("MUG", mug.sku)
        body = body | {"sku": mug.sku} if body and "sku" in body else body
        theirs = mallory.request(method, cart + path, json=body)
        none = mallory.request(method, f"/v1/carts/{uuid7()}{path}", json=body)
        problem(theirs, 404, "cart-unknown")
        assert theirs.content == none.content, "it tells a stranger that there is such a cart"


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
    ],
    ids=str,
)
def test_a_header_that_does_not_hold_is_refused(
    ann: httpx.Client, cart: str, mug: Product, headers: dict[str, str], status: int, code: str
) -> None:
    answer = ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 1}, headers=headers)
    problem(answer, status, code)


def test_a_key_used_again_with_another_body_is_refused(shop: Shop, ann: httpx.Client, cart: str, mug: Product) -> None:
    key = {"Idempotency-Key": str(uuid7())}
    ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 1}, headers=key)
    before = shop.written()
    other = ann.post(f"{cart}/items", json={"sku": mug.sku, "quantity": 2}, headers=key)
    problem(other, 422, "idempotency-key-reused")
    elsewhere = ann.post("/v1/carts", headers=key)
    problem(elsewhere, 422, "idempotency-key-reused")
    assert shop.written() == before


def forged(shop: Shop, **changes: Any) -> str:
    secret = changes.pop("secret", shop.settings.auth_secret.get_secret_value())
    claims: dict[str, Any] = {"iss": "till-roll", "aud": "till-roll", "sub": "ann", "roles": ["customer"]}
    return jwt.encode(claims | {"exp": int(time.time()) + 60} | changes, secret, "HS256")


@pytest.mark.usefixtures("nothing_written")
def test_without_a_good_token_nobody_gets_in(shop: Shop, cart: str, mug: Product) -> None:
    tokens = {
        "": "unauthenticated",
        forged(shop, exp=int(time.time()) - 1): "token-expired",
        forged(shop, secret="a secret that is not the shop's, but long"): "token-invalid",
        forged(shop, aud="another shop"): "token-invalid",
        "garbage": "token-invalid",
    }
    for token, code in tokens.items():
        with shop.client(token) as nobody:
            for method, path, body in [
                ("GET", cart, None),
                ("POST", "/v1/carts", None),
                ("POST", f"{cart}/items", {"sku": mug.sku, "quantity": 1}),
                ("PUT", f"/v1/products/{mug.sku}", {"name": "Mug", "price": price(1), "stock": 1}),
            ]:
                answer = nobody.request(method, path, json=body)
                problem(answer, 401, code)
                assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_made_by_the_same_hand_with_the_right_secret_gets_in(shop: Shop) -> None:
    """So it is for what they say that the others were refused."""
    with shop.client(forged(shop)) as somebody:
        assert somebody.post("/v1/carts").status_code == 201


@pytest.mark.usefixtures("nothing_written")
def test_a_customer_lists_no_products(ann: httpx.Client, mug: Product) -> None:
    problem(ann.put(f"/v1/products/{mug.sku}", json={"name": "Mug", "price": price(1), "stock": 1}), 403, "forbidden")
    problem(ann.delete(f"/v1/products/{mug.sku}"), 403, "forbidden")


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
def test_a_product_that_cannot_be_is_refused(operator: httpx.Client, kind: str) -> None:
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
def test_a_checkout_that_cannot_be_delivered_or_paid_is_refused(
    ann: httpx.Client, cart: str, change: dict[str, Any]
) -> None:
    problem(ann.post(f"{cart}/checkout", json=CHECKOUT | change), 422, "invalid")


def test_an_empty_cart_is_not_checked_out(ann: httpx.Client) -> None:
    problem(ann.post(f"{open_cart(ann)}/checkout", json=CHECKOUT), 409, "cart-empty")


@pytest.mark.parametrize(
    "query",
    [
        {"version": 0},
        {"version": -1},
        {"version": 3},
        {"version": 10**18},
        {"version": 10**30},
        {"version": "first"},
        {"at": "noon"},
        {"at": "0001-01-01T00:00:00+23:59"},
        {"at": "-5000-01-01T00:00:00Z"},
    ],
    ids=str,
)
def test_a_past_that_never_was_is_no_error_of_ours(ann: httpx.Client, cart: str, query: dict[str, Any]) -> None:
    answer = ann.get(cart, params=query)
    assert answer.status_code in (404, 409, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_end_of_time_is_now(ann: httpx.Client, cart: str) -> None:
    assert ann.get(cart, params={"at": "9999-12-31T23:59:59-23:59"}).content == ann.get(cart).content


def test_where_there_is_nothing_it_says_so(ann: httpx.Client, cart: str) -> None:
    problem(ann.get("/v1/nothing"), 404, "not-found")
    problem(ann.patch(cart), 405, "method-not-allowed")
    problem(ann.get("/v1/carts/no-uuid"), 422, "invalid")
    problem(ann.get("/v1/products", params={"limit": 10**9}), 422, "invalid")


# The process


def test_it_tells_how_it_is(shop: Shop) -> None:
    with shop.client() as anyone:
        assert anyone.get("/healthz").json() == {"status": "alive"}
        assert anyone.get("/readyz").json() == {"status": "ready"}
        described = anyone.get("/openapi.json").json()["paths"]
        assert {"/v1/carts", "/v1/carts/{cart_id}/items", "/v1/products/{sku}", "/v1/sessions"} <= described.keys()
        assert anyone.get("/docs").status_code == 200


HEADERS = [
    *("ce_specversion", "ce_id", "ce_type", "ce_source", "ce_subject", "ce_time", "ce_streamversion"),
    *("ce_correlationid", "ce_causationid", "ce_actor", "traceparent"),
]


@pytest.fixture
def registry(shop: Shop) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": shop.settings.registry_url}) as registry:
        yield registry


def test_whatever_was_answered_with_success_is_in_the_topic(
    shop: Shop, operator: httpx.Client, registry: SchemaRegistryClient
) -> None:
    """All that the tests before have done, read by a client that knows nothing of us."""
    correlated = operator.put(
        f"/v1/products/{new_sku()}",
        json={"name": "Mug", "price": price(100), "stock": 1},
        headers={"X-Correlation-ID": "till-test-1"},
    )
    shop.everything_published()
    records = {topic: shop.topic(topic) for topic in ("cart.events", "stock.events")}
    streams = {f"{kind}:": records[topic] for kind, topic in (("cart", "cart.events"), ("stock", "stock.events"))}
    assert len(shop.positions) > 50, "there is hardly anything to look at"
    for position in shop.positions:
        stream_id, _, version = position.rpartition("@")
        seen = versions(streams[stream_id.partition(":")[0] + ":"], stream_id)
        assert seen == list(range(1, len(seen) + 1)), stream_id
        assert int(version) <= len(seen), f"{position} was answered with success and is not in the topic"

    deserialize = AvroDeserializer(registry)
    for topic, of_topic in records.items():
        for record in of_topic:
            assert [name for name, _ in record.headers] == HEADERS
            assert record.key == record.header("ce_subject").encode()
            assert record.value
            magic, schema_id = struct.unpack_from(">bI", record.value)
            assert magic == 0
            schema = json.loads(registry.get_schema(schema_id).schema_str or "")
            assert record.header("ce_type") == schema["name"]
            assert deserialize(record.value, SerializationContext(topic, MessageField.VALUE))
    [listed] = [r for r in records["stock.events"] if r.header("ce_correlationid") == "till-test-1"]
    assert f"{listed.header('ce_subject')}@1" == correlated.headers["Event-Position"]
    assert listed.header("ce_source") == "/till-roll/catalog"
    assert listed.header("ce_actor").startswith("operator-")


def test_the_latest_of_each_product_is_in_its_topic_by_sku(
    shop: Shop, operator: httpx.Client, registry: SchemaRegistryClient
) -> None:
    product = put_product(operator, new_sku(), 100)
    put_product(operator, product.sku, 200)
    shop.everything_published()
    deserialize = AvroDeserializer(registry)
    [*_, latest] = [r for r in shop.topic("catalog.products") if r.key == product.sku.encode()]
    assert deserialize(latest.value, SerializationContext("catalog.products", MessageField.VALUE)) == {
        "sku": product.sku,
        "name": "Enamel mug ☕",
        "price": price(200),
        "withdrawn": False,
        "version": 2,
    }


def test_told_to_stop_it_finishes_what_it_has_accepted(stack_environment: dict[str, str], shop: Shop) -> None:
    """A request whose body is still on its way when the signal comes is answered; new ones are not accepted."""
    with started(stack_environment, "api") as leaving, leaving.staff("operator") as operator, leaving.guest() as ann:
        mug = put_product(operator, new_sku())
        path = open_cart(ann)
        put_in(ann, path, mug)
        body = json.dumps({"sku": mug.sku, "quantity": 4}).encode()
        with socket.create_connection(("127.0.0.1", leaving.port)) as connection:
            connection.sendall(
                f"POST {path}/items HTTP/1.1\r\nHost: shop\r\nAuthorization: {ann.headers['Authorization']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body[:10]
            )
            eventually(lambda: len(ann.get("/healthz").content) > 0, "it has read what was sent before")
            leaving.process.terminate()
            eventually(lambda: not accepts(leaving.port), "it accepts no more connections")
            connection.sendall(body[10:])
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert leaving.process.wait(20) == 0, leaving.log.read_text()
    stream_id = path.replace("/v1/carts/", "cart:")
    assert shop.fetch("cart", "SELECT max(version) FROM events WHERE stream_id = $1", stream_id)[0][0] == 3
    shop.everything_published()
    assert versions(shop.topic("cart.events"), stream_id) == [1, 2, 3]


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
