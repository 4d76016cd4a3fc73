"""Access is decided by token, role and ownership."""

import time
from typing import Any

import httpx
import jwt
import pytest
from uuid_utils import uuid7

from tests.e2e.shop import CHECKOUT, Product, Shop, price
from tests.e2e.shop_api.problem import problem


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
def test_the_cart_of_somebody_else_is_answered_like_a_missing_one(
    shop: Shop, cart: str, mug: Product, method: str, path: str, body: Any
) -> None:
    with shop.guest() as mallory:
        path = path.replace("MUG", mug.sku)
        body = body | {"sku": mug.sku} if body and "sku" in body else body
        theirs = mallory.request(method, cart + path, json=body)
        none = mallory.request(method, f"/v1/carts/{uuid7()}{path}", json=body)
        problem(theirs, 404, "cart-unknown")
        assert theirs.content == none.content, "the answer tells a stranger that there is such a cart"


def forged(shop: Shop, **changes: Any) -> str:
    secret = changes.pop("secret", shop.settings.auth_secret.get_secret_value())
    claims: dict[str, Any] = {"iss": "till-roll", "aud": "till-roll", "sub": "ann", "roles": ["customer"]}
    return jwt.encode(claims | {"exp": int(time.time()) + 60} | changes, secret, "HS256")


@pytest.mark.usefixtures("nothing_written")
def test_a_request_without_a_valid_token_is_refused(shop: Shop, cart: str, mug: Product) -> None:
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


def test_a_token_signed_with_the_right_secret_is_accepted(shop: Shop) -> None:
    """This shows that the other tokens were refused for their claims or secret, not for how the test makes them."""
    with shop.client(forged(shop)) as somebody:
        assert somebody.post("/v1/carts").status_code == 201


@pytest.mark.usefixtures("nothing_written")
def test_a_customer_can_neither_list_nor_withdraw_products(ann: httpx.Client, mug: Product) -> None:
    problem(ann.put(f"/v1/products/{mug.sku}", json={"name": "Mug", "price": price(1), "stock": 1}), 403, "forbidden")
    problem(ann.delete(f"/v1/products/{mug.sku}"), 403, "forbidden")
