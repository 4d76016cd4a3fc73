"""What FastAPI cannot see from a signature: the headers we read ourselves, the token, and our kind of errors."""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from shared.http.problems import TYPE
from shared.http.routes import dependencies_of

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

ERRORS = {
    400: ("json-invalid", "The body is not JSON, or a header cannot be read."),
    401: ("unauthenticated", "There is no token, or it is forged or expired."),
    403: ("forbidden", "The token lacks the role."),
    404: ("cart-unknown", "There is no such thing, or it is somebody else's."),
    409: ("cart-checked-out", "A rule of the shop says no."),
    412: ("version-stale", "It has changed since the ETag in If-Match."),
    413: ("body-too-large", "The body is too large."),
    422: ("invalid", "A value is out of bounds, or an Idempotency-Key came with another body."),
    429: ("too-many-requests", "Too many requests from this token; see Retry-After."),
    503: ("unavailable", "A part of the shop is down. Nothing is lost; see Retry-After."),
    504: ("position-not-reached", "The view has not reached Min-Position in time."),
}
ON_READS = (400, 404, 422, 503, 504)
ON_WRITES = (400, 404, 409, 412, 413, 422, 503, 504)
WITH_TOKEN = (401, 403, 429)

HEADERS = {
    "Idempotency-Key": "The same key and body: the same answer and one effect, however often it is sent.",
    "If-Match": "Only if the ETag is still this one.",
    "Min-Position": "Wait until this Event-Position, as answered before, is visible.",
}
ANSWERED = {"ETag": "The version, for If-Match.", "Event-Position": "For Min-Position."}


def document(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    guarded = {
        (route.path, method.lower())
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        and any(getattr(d, "needs_token", False) for d in dependencies_of(route.endpoint))
        for method in route.methods or ()
    }

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(app, guarded)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(app: FastAPI, guarded: set[tuple[str, str]]) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path, method, operation in _operations(schema):
        if path.startswith("/v1/"):
            _describe(operation, method, needs_token=(path, method) in guarded)
        else:
            operation.get("responses", {}).pop("422", None)
    return schema


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _describe(operation: dict[str, Any], method: str, needs_token: bool) -> None:
    reads = method == "get"
    headers = ["Min-Position"] if reads else [*HEADERS] if needs_token else []
    operation.setdefault("parameters", []).extend(
        {"name": name, "in": "header", "required": False, "description": HEADERS[name], "schema": {"type": "string"}}
        for name in headers
    )
    if needs_token:
        operation["security"] = [{"token": []}]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            answer["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in ANSWERED.items()
            }
    for status in sorted({*(ON_READS if reads else ON_WRITES), *(WITH_TOKEN if needs_token else ())}):
        operation["responses"][str(status)] = _problem(status)


def _problem(status: int) -> dict[str, Any]:
    code, text = ERRORS[status]
    example = {"type": TYPE + code, "title": code.replace("-", " ").capitalize(), "status": status, "detail": text}
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    return {"description": text, "content": {"application/problem+json": content}}
