"""What FastAPI cannot see from a signature: the headers we read ourselves, the token, and our kind of errors."""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from shared.http.problems import TYPE
from shared.http.routes import dependencies_of

Guarded = dict[tuple[str, str], Sequence[str]]
"""By path and method of what needs a token: the roles of which it has to have one, if any."""

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
# What may happen to any request. What only some can be answered, they say themselves (`refusal`).
ERRORS = {
    400: ("json-invalid", "The body is not JSON, or a header cannot be read."),
    401: ("unauthenticated", "There is no token, or it is forged or expired."),
    404: ("not-found", "There is nothing at this path."),
    405: ("method-not-allowed", "The path takes other methods; see Allow."),
    412: ("version-stale", "It has changed since the ETag in If-Match."),
    413: ("body-too-large", "The body is too large."),
    422: ("invalid", "A value is out of bounds, or an Idempotency-Key came with another body."),
    429: ("too-many-requests", "Too many requests from this token; see Retry-After."),
    503: ("unavailable", "A part of the shop is down. Nothing is lost; see Retry-After."),
    504: ("position-not-reached", "The view has not reached Min-Position in time."),
}
ON_PATHS = (404, 405)
"""With a parameter in it: `.` or `%2F` in its place lead elsewhere."""
ON_READS = (400, 422, 503, 504)
ON_WRITES = (400, 412, 413, 422, 503, 504)
WITH_TOKEN = (401, 429)

HEADERS: dict[str, tuple[str, dict[str, Any]]] = {
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
ANSWERED = {
    "ETag": ("The version, for If-Match.", '"7"'),
    "Event-Position": ("For Min-Position.", "cart:0190b1de-0000-7000-8000-000000000001@7"),
    "Location": ("Where it is.", "/v1/carts/0190b1de-0000-7000-8000-000000000001"),
    "Allow": ("The methods it takes.", "GET, PUT"),
    "Retry-After": ("Seconds.", "1"),
    "WWW-Authenticate": ("How to authenticate.", "Bearer"),
}
HEADERS_OF_ERRORS = {405: ["Allow"], 401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}


def refusal(status: int, code: str, text: str) -> dict[int | str, dict[str, Any]]:
    """For the `responses` of a route: what it alone can be answered."""
    example = {"type": TYPE + code, "title": code.replace("-", " ").capitalize(), "status": status, "detail": text}
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    answer: dict[str, Any] = {"description": text, "content": {"application/problem+json": content}}
    if status in HEADERS_OF_ERRORS:
        answer["headers"] = _answered(HEADERS_OF_ERRORS[status])
    return {status: answer}


def document(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    guarded: Guarded = {
        (route.path, method.lower()): dependency.roles
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for dependency in dependencies_of(route.endpoint)
        if hasattr(dependency, "roles")
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
    """From every answer that names a cart, an order or a payment to all that can be done with it."""
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
    """`roles` are None where no token is needed."""
    reads, needs_token = method == "get", roles is not None
    operation.setdefault("parameters", []).extend(_header(name) for name in _read(method, needs_token))
    if needs_token:
        operation["security"] = [{"token": []}]
    own = operation["responses"]
    own.pop("422", None)  # FastAPI's kind, which is none of ours
    for status, answer in own.items():
        if status.startswith("2"):
            has_version = path.endswith("}") or (needs_token and not reads)
            names = ["ETag", "Event-Position", "Location"][: 3 if status != "200" else 2] if has_version else []
            answer["headers"] = _answered(names)
            for content in answer.get("content", {}).values():
                if "itemSchema" in content:  # of each item of a stream; FastAPI adds that the whole is a string
                    content.pop("schema", None)
    operation["responses"] = dict(sorted((_problems(path, reads, roles) | own).items()))


def _problems(path: str, reads: bool, roles: Sequence[str] | None) -> dict[str, Any]:
    statuses = [*ON_READS] if reads else [413] if roles is None else [*ON_WRITES]
    if roles is not None:
        statuses += WITH_TOKEN
    if "{" in path:
        statuses += ON_PATHS
    problems = {str(status): refusal(status, *ERRORS[status])[status] for status in statuses}
    if roles:
        problems["403"] = refusal(403, "forbidden", f"This needs the role {' or '.join(roles)}.")[403]
    return problems


def _read(method: str, needs_token: bool) -> list[str]:
    if method == "get":
        return ["Min-Position"]
    return [name for name in HEADERS if name != "If-None-Match" or method == "put"] if needs_token else []


def _header(name: str) -> dict[str, Any]:
    text, schema = HEADERS[name]
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": text,
        "schema": {"type": "string", **schema},
    }


def _answered(names: Sequence[str]) -> dict[str, Any]:
    return {
        name: {"description": text, "schema": {"type": "string", "examples": [example]}}
        for name in names
        for text, example in [ANSWERED[name]]
    }
