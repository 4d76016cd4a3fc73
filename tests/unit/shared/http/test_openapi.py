"""The OpenAPI document names the headers that an operation takes and the problems that it may answer with."""

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Response

from shared.http.calls import Authenticate, Authenticated, Reading
from shared.http.openapi import document, refusal

routes = APIRouter()


@routes.get("/v1/things/{thing_id}")
async def read(thing_id: int, reading: Reading) -> Response: ...  # type: ignore[empty-body]


@routes.post("/v1/things", status_code=201)
async def create(call: Authenticated) -> Response: ...  # type: ignore[empty-body]


@routes.post("/v1/things/{thing_id}", responses=refusal(409, "thing-gone", "The thing is gone."))
async def change(thing_id: int, call: Authenticated) -> Response: ...  # type: ignore[empty-body]


@routes.put("/v1/things/{thing_id}")
async def put(thing_id: int, call: Annotated[Any, Depends(Authenticate("staff"))]) -> Response: ...  # type: ignore[empty-body]


@routes.post("/v1/tokens")
async def anyone() -> Response: ...  # type: ignore[empty-body]


def operations() -> dict[str, dict[str, Any]]:
    app = FastAPI()
    app.router.routes.extend(routes.routes)
    document(app, [routes])
    return {
        f"{method} {path}": operation
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


def headers(operation: dict[str, Any]) -> list[str]:
    return [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "header"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("get /v1/things/{thing_id}", ["Min-Position"]),
        ("post /v1/things", ["Idempotency-Key", "If-Match"]),
        ("post /v1/things/{thing_id}", ["Idempotency-Key", "If-Match", "Min-Position"]),
        ("put /v1/things/{thing_id}", ["Idempotency-Key", "If-Match", "If-None-Match", "Min-Position"]),
        ("post /v1/tokens", []),
    ],
)
def test_an_operation_names_the_headers_that_it_takes(operation: str, expected: list[str]) -> None:
    assert headers(operations()[operation]) == expected


def test_only_an_operation_that_takes_min_position_may_fail_to_reach_it() -> None:
    for name, operation in operations().items():
        assert ("504" in operation["responses"]) == ("Min-Position" in headers(operation)), name


def test_an_operation_names_its_own_refusals_and_the_role_that_it_requires() -> None:
    found = operations()
    assert found["post /v1/things/{thing_id}"]["responses"]["409"]["description"] == "The thing is gone."
    assert found["put /v1/things/{thing_id}"]["responses"]["403"]["description"] == "This needs the role staff."
    assert "403" not in found["post /v1/things/{thing_id}"]["responses"]


def test_an_operation_that_needs_a_token_says_so() -> None:
    assert {name for name, operation in operations().items() if "security" in operation} == {
        "post /v1/things",
        "post /v1/things/{thing_id}",
        "put /v1/things/{thing_id}",
    }
