"""Completes the OpenAPI document with what FastAPI cannot see in a signature: headers, the token, and problems."""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from shared.http.calls import Authenticate
from shared.http.problems import Problem

Guarded = dict[tuple[str, str], Sequence[str]]
"""(path, method) of routes that need a token -> roles, any one of which is required; empty: any token."""

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Stable; tells the kind of problem."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened and what to do, for a person."},
    },
}
# Problems that any request may get. A route declares its own refusals itself (`refusal`).
ERRORS = {
    400: ("json-invalid", "The body is not JSON, or a header cannot be read."),
    401: ("unauthenticated", "There is no token, or it is forged or expired."),
    404: ("not-found", "There is nothing at this path."),
    405: ("method-not-allowed", "The path takes other methods; see Allow."),
    412: ("version-stale", "It has changed since the ETag in If-Match."),
    413: ("body-too-large", "The body is too large."),
    422: ("invalid", "A value is out of bounds, or an Idempotency-Key came with another body."),
    429: ("too-many-requests", "Too many requests from this token; see Retry-After."),
    503: ("unavailable", "A server that this needs is down. Nothing is lost; see Retry-After."),
    504: ("position-not-reached", "The view has not reached Min-Position in time."),
}
ON_PATHS = (404, 405)
"""Statuses of paths with a parameter: `.` or `%2F` in its place lead to another path."""
ON_READS = (400, 422, 503)
ON_WRITES = (400, 412, 413, 422, 503)
WITH_MIN_POSITION = (504,)
WITH_TOKEN = (401, 429)

REQUEST_HEADERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Idempotency-Key": (
        "The same key and body: the same answer and one effect, however often it is sent.",
        {"pattern": r"^[!-~]{1,200}$"},
    ),
    "If-Match": ("Only if the ETag is still this one.", {"pattern": r'^(\*|(W/)?"[0-9]{1,9}"|[0-9]{1,9})$'}),
    "If-None-Match": ("Only if there is none yet.", {"enum": ["*"]}),
    "Min-Position": (
        "Wait until this Event-Position, as answered before, is visible.",
        {"pattern": r"^[a-z]+:[!-~]{1,200}@[0-9]{1,9}$"},
    ),
}
RESPONSE_HEADERS = {
    "ETag": ("The version; send it as If-Match.", '"7"'),
    "Event-Position": (
        "The position; send it as Min-Position to see this write.",
        "example:0190b1de-0000-7000-8000-000000000001@7",
    ),
    "Location": ("The path of what was created.", "/v1/examples/0190b1de-0000-7000-8000-000000000001"),
    "Allow": ("The methods that the path takes.", "GET, PUT"),
    "Retry-After": ("Seconds to wait before the next attempt.", "1"),
    "WWW-Authenticate": ("The way to authenticate.", "Bearer"),
}
ERROR_HEADERS = {405: ["Allow"], 401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}


def refusal(status: int, code: str, text: str) -> dict[int | str, dict[str, Any]]:
    """Describes a refusal of one route, for its `responses`."""
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": Problem(status, code, text).document()}
    answer: dict[str, Any] = {"description": text, "content": {"application/problem+json": content}}
    if status in ERROR_HEADERS:
        answer["headers"] = _response_headers(ERROR_HEADERS[status])
    return {status: answer}


def document(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Makes the application serve the completed document, which is built when it is first asked for."""
    guarded: Guarded = {
        (route.path, method.lower()): dependency.call.roles
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for dependency in route.dependant.dependencies
        if isinstance(dependency.call, Authenticate)
        for method in route.methods or ()
    }

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(app, guarded)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(app: FastAPI, guarded: Guarded) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path, method, operation in _operations(schema):
        if path.startswith("/v1/"):
            _describe(operation, path, method, guarded.get((path, method)))
    _link(schema)
    return schema


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _link(schema: dict[str, Any]) -> None:
    """Links every response that names a resource (`cart_id`) to the operations that take it in their path."""
    takers = [
        (parameter["name"], operation["operationId"])
        for _, _, operation in _operations(schema)
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path"
    ]
    for _, _, operation in _operations(schema):
        for status, answer in operation["responses"].items():
            model = answer.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
            named = schema["components"]["schemas"].get(model.rpartition("/")[2], {}).get("properties", {})
            links = {
                taker: {"operationId": taker, "parameters": {name: f"$response.body#/{name}"}}
                for name, taker in takers
                if name in named and status.startswith("2") and taker != operation["operationId"]
            }
            if links:
                answer["links"] = links


def _describe(operation: dict[str, Any], path: str, method: str, roles: Sequence[str] | None) -> None:
    """Adds headers, security and problems to an operation. `roles` is None if it needs no token."""
    reads, needs_token = method == "get", roles is not None
    taken = _request_headers(path, method, needs_token)
    operation.setdefault("parameters", []).extend(_header(name) for name in taken)
    if needs_token:
        operation["security"] = [{"token": []}]
    own = operation["responses"]
    own.pop("422", None)  # FastAPI's own kind of error, which is never sent
    for status, answer in own.items():
        if status.startswith("2"):
            shows_version = path.endswith("}") or (needs_token and not reads)
            names = ["ETag", "Event-Position"] if shows_version else []
            if shows_version and status != "200":
                names.append("Location")
            answer["headers"] = _response_headers(names)
            for content in answer.get("content", {}).values():
                if "itemSchema" in content:  # it describes each item; FastAPI adds that the whole is a string
                    content.pop("schema", None)
    operation["responses"] = dict(sorted((_problems(path, method, roles, taken) | own).items()))


def _problems(path: str, method: str, roles: Sequence[str] | None, taken: Sequence[str]) -> dict[str, Any]:
    """Describes the problems of an operation that takes these headers."""
    statuses = [*ON_READS] if method == "get" else [413] if roles is None else [*ON_WRITES]
    if "Min-Position" in taken:
        statuses += WITH_MIN_POSITION
    if roles is not None:
        statuses += WITH_TOKEN
    if "{" in path:
        statuses += ON_PATHS
    problems = {str(status): refusal(status, *ERRORS[status])[status] for status in statuses}
    if roles:
        problems["403"] = refusal(403, "forbidden", f"This needs the role {' or '.join(roles)}.")[403]
    return problems


def _request_headers(path: str, method: str, needs_token: bool) -> list[str]:
    if method == "get":
        return ["Min-Position"]
    if not needs_token:
        return []
    inapplicable = set() if method == "put" else {"If-None-Match"}
    if "{" not in path:  # it creates something new, so there is no earlier version to wait for
        inapplicable.add("Min-Position")
    return [name for name in REQUEST_HEADERS if name not in inapplicable]


def _header(name: str) -> dict[str, Any]:
    text, schema = REQUEST_HEADERS[name]
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": text,
        "schema": {"type": "string", **schema},
    }


def _response_headers(names: Sequence[str]) -> dict[str, Any]:
    return {
        name: {"description": text, "schema": {"type": "string", "examples": [example]}}
        for name in names
        for text, example in [RESPONSE_HEADERS[name]]
    }
