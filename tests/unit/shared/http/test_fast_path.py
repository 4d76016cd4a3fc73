"""The fast path answers every request as plain FastAPI does: the same requests are sent both ways and compared."""

import asyncio
import json
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx
import orjson
import pytest
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Response
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.types import ASGIApp

from shared.errors import Contended, KeyReused, OperatorError, Refused, StaleVersion
from shared.http.app import create_app
from shared.http.auth import Tokens
from shared.http.calls import Authenticate, Authenticated, Call, Reading
from shared.http.fast_path import FastPath
from shared.http.problems import Problem
from shared.settings import Settings

SETTINGS = Settings(auth_secret=SecretStr("a secret of more than thirty-two characters"), rate_limit=0)
ERRORS: dict[str, Exception] = {
    "refused": Refused("cart-empty", "An empty cart cannot be checked out."),
    "unknown": Refused("cart-unknown", "There is no such cart."),
    "problem": Problem(418, "teapot", "Short and stout.", {"Retry-After": "3"}, spout="left"),
    "stale": StaleVersion(7),
    "reused": KeyReused("This Idempotency-Key was used with another request."),
    "contended": Contended("cart:1"),
    "operator": OperatorError("The disk is full.", "Buy another one."),
    "database": ConnectionRefusedError("no database"),
    "bug": RuntimeError("a bug with a secret in it"),
}
THING = "0190b1de-0000-7000-8000-000000000001"
ITEMS = f"/things/{THING}/items"

Sku = Annotated[str, Path(max_length=6, pattern=r"^[A-Z]+$")]
Answered = tuple[int, list[tuple[str, str]], bytes]
Staff = Annotated[Call, Depends(Authenticate("staff"))]


class Inner(BaseModel):
    model_config = ConfigDict(strict=True)

    kind: Literal["standard", "express"] = "standard"
    name: Annotated[str, Field(min_length=1, max_length=5)]


class Item(BaseModel):
    model_config = ConfigDict(strict=True)

    sku: Annotated[str, Field(max_length=6)]
    quantity: Annotated[int, Field(ge=1, le=99)]
    inner: Inner | None = None


def _shown(**values: Any) -> Response:
    return Response(orjson.dumps(values, default=str), media_type="application/json")


def _router() -> APIRouter:
    routes = APIRouter()

    @routes.get("/things")
    async def listing(reading: Reading, limit: Annotated[int, Query(ge=1)] = 5) -> Response:
        return _shown(limit=limit, position=reading.min_position)

    @routes.get("/things/{thing_id}")
    async def thing(thing_id: UUID, reading: Reading) -> Response:
        return _shown(thing=thing_id, position=reading.min_position)

    @routes.post("/things/{thing_id}/items", status_code=201)
    async def add(thing_id: UUID, item: Item, call: Authenticated) -> Response:
        return _shown(thing=thing_id, item=item.model_dump(), by=call.principal.subject, key=call.key)

    @routes.put("/things/{thing_id}/items/{sku}")
    async def change(thing_id: UUID, sku: Sku, inner: Inner, call: Authenticated) -> Response:
        return _shown(thing=thing_id, sku=sku, inner=inner.model_dump(), expected=call.expected)

    @routes.delete("/things/{thing_id}")
    async def remove(thing_id: UUID, call: Staff) -> Response:
        return _shown(thing=thing_id, by=call.principal.subject)

    @routes.post("/errors/{kind}")
    async def fail(kind: str, call: Authenticated) -> Response:
        raise ERRORS[kind]

    @routes.post("/model", status_code=201)
    async def model() -> Inner:
        return Inner(name="ann")

    return routes


def _app(fast_path: bool) -> ASGIApp:
    async def nothing() -> dict[str, str]:
        return {}

    async def no_samples() -> list[Any]:
        return []

    return create_app(SETTINGS, "test", [_router()], {"cart-unknown": 404}, nothing, no_samples, fast_path)


FAST, PLAIN = _app(fast_path=True), _app(fast_path=False)
TOKEN = {"Authorization": f"Bearer {Tokens(SETTINGS).mint('ann', ['customer'], 3600)}"}
STAFF = {"Authorization": f"Bearer {Tokens(SETTINGS).mint('sam', ['staff'], 3600)}"}
JSON = {"Content-Type": "application/json"}
ITEM = b'{"sku": "MUG", "quantity": 2, "inner": {"name": "ann"}}'


def answers(method: str, path: str, headers: dict[str, str], body: bytes | None) -> tuple[Answered, Answered]:
    """Returns status, headers and body of the request's answer on the fast path and by plain FastAPI."""

    async def ask(app: ASGIApp) -> Answered:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as http:
            answer = await http.request(method, path, headers=JSON | headers, content=body)
        return answer.status_code, sorted(answer.headers.multi_items()), answer.content

    return asyncio.run(ask(FAST)), asyncio.run(ask(PLAIN))


def assert_alike(fast: Answered, plain: Answered) -> None:
    """Compares two answers byte for byte. Invalid requests may differ in words: the fast path stops at the first part
    that is wrong, and reads JSON with pydantic.
    """
    if fast != plain and fast[0] == plain[0] == 422:
        (_, fast_headers, fast_body), (_, plain_headers, plain_body) = fast, plain
        assert dict(fast_headers).keys() == dict(plain_headers).keys()
        found, expected = orjson.loads(fast_body), orjson.loads(plain_body)
        assert found["type"] == expected["type"] == "urn:till:problem:invalid"
        wrong = [error["where"] for error in found["errors"]]
        assert wrong
        assert set(wrong) <= {error["where"] for error in expected["errors"]}
    else:
        assert fast == plain


REQUESTS: list[tuple[str, str, dict[str, str], bytes | None, int]] = [
    ("GET", f"/things/{THING}", {}, None, 200),
    ("GET", f"/things/{THING.upper()}", {}, None, 200),
    ("GET", f"/things/{THING}", {"Min-Position": "cart:7@3"}, None, 200),
    ("GET", f"/things/{THING}", {"Min-Position": "nonsense"}, None, 400),
    ("GET", "/things/7", {}, None, 422),
    ("GET", "/things/", {}, None, 404),
    ("GET", f"/things/{THING}/", {}, None, 404),
    ("GET", "/things", {}, None, 200),
    ("GET", "/things?limit=3", {}, None, 200),
    ("GET", "/things?limit=0", {}, None, 422),
    ("PATCH", f"/things/{THING}", {}, None, 405),
    ("GET", "/nowhere", {}, None, 404),
    *(("GET", path, {}, None, 200) for path in ("/docs", "/openapi.json", "/healthz", "/readyz")),
    ("POST", "/model", {}, None, 201),
    ("POST", ITEMS, TOKEN, ITEM, 200),
    ("POST", ITEMS, TOKEN | {"Idempotency-Key": "k1"}, ITEM, 200),
    ("POST", ITEMS, TOKEN | {"Idempotency-Key": "two words"}, ITEM, 400),
    ("POST", ITEMS, {}, ITEM, 401),
    ("POST", ITEMS, {"Authorization": "Bearer forged"}, ITEM, 401),
    ("POST", ITEMS, TOKEN, b'{"sku": "MUG", "quantity": "2"}', 422),
    ("POST", ITEMS, TOKEN, b'{"sku": "MUG", "quantity": 100}', 422),
    ("POST", ITEMS, TOKEN, b'{"sku": "MUG", "quantity": 1.0}', 422),
    ("POST", ITEMS, TOKEN, b'{"sku": "MUG", "quantity": 1, "inner": {"kind": "fast", "name": ""}}', 422),
    ("POST", ITEMS, TOKEN, b'{"sku": "MUG", "quantity": 1, "more": []}', 200),
    ("POST", ITEMS, TOKEN, b"[]", 422),
    ("POST", ITEMS, TOKEN, b"{}", 422),
    ("POST", ITEMS, TOKEN, b'{"sku": ', 400),
    ("POST", "/things/7/items", TOKEN, b"{}", 422),
    ("PUT", f"{ITEMS}/MUG", TOKEN | {"If-Match": '"7"'}, b'{"name": "ann"}', 200),
    ("PUT", f"{ITEMS}/MUG", TOKEN | {"If-None-Match": "*"}, b'{"name": "ann"}', 200),
    ("PUT", f"{ITEMS}/MUG", TOKEN | {"If-Match": "seven"}, b'{"name": "ann"}', 400),
    ("PUT", f"{ITEMS}/mug", TOKEN, b'{"name": "ann"}', 422),
    ("PUT", f"{ITEMS}/M%55G", TOKEN, b'{"name": "ann"}', 200),
    ("PUT", f"{ITEMS}/MUG-350", TOKEN, b'{"name": "ann"}', 422),
    ("DELETE", f"/things/{THING}", STAFF, None, 200),
    ("DELETE", f"/things/{THING}", TOKEN, None, 403),
    *(("POST", f"/errors/{kind}", TOKEN, None, 0) for kind in ERRORS),
]


@pytest.mark.parametrize(("method", "path", "headers", "body", "status"), REQUESTS)
def test_the_fast_path_answers_as_fastapi_does(
    method: str, path: str, headers: dict[str, str], body: bytes | None, status: int
) -> None:
    fast, plain = answers(method, path, headers, body)
    assert_alike(fast, plain)
    assert not status or fast[0] == status


plain_values = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    # A lone surrogate is no text: Python's JSON parser lets it pass, and pydantic's does not.
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
json_values = (
    plain_values
    | st.lists(plain_values, max_size=3)
    | st.dictionaries(st.sampled_from(["sku", "name", "x"]), plain_values)
)
items = st.fixed_dictionaries(
    {"sku": st.sampled_from(["MUG", "TOO-LONG"]) | json_values, "quantity": st.integers(-1, 101) | json_values},
    optional={"inner": st.fixed_dictionaries({"name": json_values}, optional={"kind": json_values}) | json_values},
)


@settings(max_examples=150, deadline=None)
@given((items | json_values).filter(lambda body: body is not None))
def test_any_json_body_is_judged_alike_both_ways(body: Any) -> None:
    assert_alike(*answers("POST", ITEMS, TOKEN, json.dumps(body).encode()))


def test_only_endpoints_with_simple_parameters_and_a_response_take_the_fast_path() -> None:
    app = FastAPI()
    app.router.routes.extend(_router().routes)
    simple = {route.path for it in FastPath(app)._routes.values() for _, route, run in it if run}
    assert simple == {
        "/things/{thing_id}",
        "/things/{thing_id}/items",
        "/things/{thing_id}/items/{sku}",
        "/errors/{kind}",
    }


def test_the_fast_path_differs_from_fastapi_where_there_is_no_body_or_it_is_not_called_json() -> None:
    without_body = answers("POST", ITEMS, TOKEN, None)
    not_called_json = answers("POST", ITEMS, TOKEN | {"Content-Type": "text/plain"}, ITEM)
    assert [[status for status, _, _ in both] for both in (without_body, not_called_json)] == [[400, 422], [200, 422]]
