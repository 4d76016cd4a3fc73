"""The OpenAPI document is true: every example fits its schema, and every answer of the shop is described."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from infra.local.processes.ports import free_ports
from services.common.roles import Role
from shared.http.auth import Tokens
from tests.e2e.provider import provider
from tests.e2e.shop import CHECKOUT, Shop, new_sku, open_cart, put_in, put_product, started
from tests.integration.services.refusing import refusing
from tests.till import eventually

RULES = Path(__file__).parents[2] / "schemathesis.toml"
# The same few requests each time. A run by hand can try more and other ones: see schemathesis.toml.
FEW = ["--generation-deterministic", "--max-examples", "5"]


@pytest.fixture(scope="module")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    environment = stack_environment | {"TILL_PSP_PORT": str(free_ports(1)[0]), "TILL_PSP_LATENCY_MS": "1"}
    quick = {"TILL_MIN_POSITION_TIMEOUT": "0.05", "TILL_RATE_LIMIT": "0"}
    with provider(environment), started(environment, **quick) as shop:
        yield shop


@pytest.fixture(scope="module")
def described(shop: Shop) -> dict[str, Any]:
    document: dict[str, Any] = httpx.get(f"{shop.url}/openapi.json").json()
    return document


# Examples


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def bodies(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every request and response body with the place it is described at."""
    for name, operation in operations(described):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{name} takes {media_type}", content
        for status, answer in operation["responses"].items():
            for media_type, content in answer.get("content", {}).items():
                yield f"{name} answers {status} {media_type}", content


def examples(described: dict[str, Any], content: dict[str, Any]) -> list[Any]:
    schema = content.get("schema") or content.get("itemSchema") or {}
    if reference := schema.get("$ref"):
        schema = described["components"]["schemas"][reference.rpartition("/")[2]]
    return [*schema.get("examples", ()), *([content["example"]] if "example" in content else ())]


def faults(described: dict[str, Any]) -> list[str]:
    """Lists bodies without an example, and examples that do not fit their schema."""
    found = []
    for where, content in bodies(described):
        if where.endswith("text/plain"):
            continue
        given = examples(described, content)
        if not given:
            found.append(f"{where}: no example")
        schema = content.get("schema") or content.get("itemSchema") or {}
        validator = Draft202012Validator(schema | {"components": described["components"]})
        found += [f"{where}: {error.message}" for example in given for error in validator.iter_errors(example)]
    return found


def test_every_body_has_an_example_that_fits_its_schema(described: dict[str, Any]) -> None:
    assert faults(described) == []


def test_an_example_that_is_missing_or_does_not_fit_would_be_found(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    false = schemas["OrderBody"] | {"examples": [{"order_id": 7}]}
    missing = {name: value for name, value in schemas["Session"].items() if name != "examples"}
    planted = described | {"components": {"schemas": schemas | {"OrderBody": false, "Session": missing}}}
    found = faults(planted)
    assert "POST /v1/sessions answers 201 application/json: no example" in found
    assert any(fault.startswith("POST /v1/orders/{order_id}/cancel answers 200") for fault in found)


def test_every_parameter_of_a_path_has_an_example(described: dict[str, Any]) -> None:
    assert not [
        f"{name} {parameter['name']}"
        for name, operation in operations(described)
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path" and not parameter["schema"].get("examples")
    ]


def test_the_examples_can_be_sent_one_after_the_other(described: dict[str, Any], shop: Shop) -> None:
    """The examples together are a purchase that works; only the ids differ."""
    taken = {name: examples(described, content)[0] for name, content in bodies(described) if " takes " in name}
    with shop.staff("operator") as operator, shop.guest() as guest:
        listed = operator.put("/v1/products/MUG-350", json=taken["PUT /v1/products/{sku} takes application/json"])
        seen = {"Min-Position": listed.headers["Event-Position"]}
        eventually(lambda: guest.get("/v1/products/MUG-350", headers=seen).is_success, "the product is listed")
        cart = open_cart(guest)
        for method, path in (("POST", "/items"), ("PUT", "/items/{sku}"), ("POST", "/checkout")):
            body = taken[f"{method} /v1/carts/{{cart_id}}{path} takes application/json"]
            send = partial(guest.request, method, cart + path.format(sku="MUG-350"), json=body, headers=seen)
            eventually(partial(is_taken, send), f"{method} {path} is taken")


def is_taken(send: Callable[[], httpx.Response]) -> bool:
    answer = send()
    assert answer.is_success or answer.status_code == 504, answer.text
    return answer.is_success


# Answers


class Purchase:
    """Prepares real ids for generated requests: an open cart, and a paid order."""

    def __init__(self, shop: Shop) -> None:
        with shop.staff("operator") as operator, shop.guest() as guest:
            product = put_product(operator, new_sku())
            bought = open_cart(guest)
            put_in(guest, bought, product)
            order = guest.post(f"{bought}/checkout", json=CHECKOUT).headers["Location"]
            paid = eventually(
                lambda: (it := guest.get(order).json()).get("status") == "confirmed" and it, "it is confirmed"
            )
            self.token = guest.headers["Authorization"]
            self.cart = open_cart(guest)
            put_in(guest, self.cart, product)
        self.ids = {
            "cart_id": self.cart.rpartition("/")[2],
            "order_id": paid["order_id"],
            "payment_id": paid["payment_id"],
            "sku": product.sku,
        }


def schemathesis(shop: Shop, folder: Path, token: str, ids: dict[str, str], *options: str) -> tuple[int, str]:
    """Runs Schemathesis as one would by hand, and returns its exit code and output."""
    parameters = "".join(f'"path.{name}" = "{value}"\n' for name, value in ids.items())
    (folder / "schemathesis.toml").write_text(f"{RULES.read_text()}\n[parameters]\n{parameters}")
    ran = subprocess.run(
        [
            *(Path(sys.executable).with_name("st"), "run", f"{shop.url}/openapi.json"),
            *("--header", f"Authorization:{token}", "--request-timeout", "30", "--no-color", *options),
        ],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
    return ran.returncode, ran.stdout


def token_of(shop: Shop, role: Role) -> str:
    return f"Bearer {Tokens(shop.settings).mint(f'{role}-of-test', [role], 3600)}"


@pytest.mark.parametrize(
    ("role", "phases"),
    [
        ("customer", "examples,coverage,fuzzing,stateful"),
        ("support", "examples,fuzzing,stateful"),
        ("operator", "examples,fuzzing,stateful"),
    ],
)
def test_every_answer_to_generated_requests_is_described(shop: Shop, tmp_path: Path, role: Role, phases: str) -> None:
    purchase = Purchase(shop)
    token = purchase.token if role == "customer" else token_of(shop, role)
    code, output = schemathesis(shop, tmp_path, token, purchase.ids, "--phases", phases, *FEW)
    assert code == 0, output
    assert "Tested: 22" in output, output
    assert "Traceback" not in shop.log.read_text()


def test_an_internal_error_would_be_found(shop: Shop, tmp_path: Path) -> None:
    """PostgreSQL refuses to store an event, which no handler foresees."""
    purchase = Purchase(shop)
    with refusing(shop, "cart", f"cart:{purchase.ids['cart_id']}"):
        only = ["--phases", "examples", "--include-path", "/v1/carts/{cart_id}/items"]
        code, output = schemathesis(shop, tmp_path, purchase.token, purchase.ids, *only)
    assert code == 1, output
    assert "[500] Internal Server Error" in output, output
