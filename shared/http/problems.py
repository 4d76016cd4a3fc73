"""Turns errors into application/problem+json (RFC 9457). Each kind has a stable type; none shows a stack trace."""

import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Scope

from shared.errors import Contended, KeyReused, OperatorError, Refused, StaleVersion
from shared.store.database import CONNECTION_ERRORS, Unavailable, is_connection_error

log = logging.getLogger(__name__)

TYPE = "urn:till:problem:"
RETRY_AFTER = {"Retry-After": "1"}


class Problem(HTTPException):
    """An error answer. It is an HTTPException, so that FastAPI lets it through wherever it is raised."""

    def __init__(self, status: int, code: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(status, detail, headers)
        self.status = status
        self.code = code
        self.more = more

    def response(self) -> Response:
        return Response(self.body(), self.status, self.headers, "application/problem+json")

    def document(self) -> dict[str, Any]:
        title = self.code.replace("-", " ").capitalize()
        return {"type": TYPE + self.code, "title": title, "status": self.status, "detail": self.detail, **self.more}

    def body(self) -> bytes:
        return orjson.dumps(self.document())


Statuses = Mapping[str, int]
"""HTTP status by refusal code, for refusals that are not 409."""


def refusal_problem(refused: Refused, statuses: Statuses) -> Problem:
    """Returns the problem of a refusal; its status is 409 unless `statuses` has another one."""
    return Problem(statuses.get(refused.code, 409), refused.code, refused.message)


def unauthenticated(detail: str, code: str = "unauthenticated") -> Problem:
    return Problem(401, code, detail, {"WWW-Authenticate": "Bearer"})


def _problem_of(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case StaleVersion():
            return Problem(412, "version-stale", f"It has changed since you read it. {error}", version=error.version)
        case KeyReused():
            return Problem(422, "idempotency-key-reused", str(error))
        case Contended():
            return Problem(503, "contended", "Too many at once; nothing was written. Try again.", RETRY_AFTER)
        case Unavailable() | OperatorError():
            return _unavailable()
        case ClientDisconnect():
            return Problem(400, "body-cut-off", "The connection was closed before the body had ended.")
        case RequestValidationError():
            return _validation_problem(error)
        case HTTPException():
            codes = {404: "not-found", 405: "method-not-allowed"}
            return Problem(
                error.status_code,
                codes.get(error.status_code, "http"),
                str(error.detail),
                dict(error.headers or {}),
            )
    if is_connection_error(error):
        return _unavailable()
    return Problem(500, "internal", "Something went wrong on our side; it has been logged.")


def _unavailable() -> Problem:
    return Problem(503, "unavailable", "A server that this needs is down; try again shortly.", RETRY_AFTER)


def _validation_problem(error: RequestValidationError) -> Problem:
    found = error.errors()
    if any(e["type"] == "json_invalid" for e in found):
        return Problem(400, "json-invalid", "The body is not valid JSON.")
    errors = [{"where": "/".join(map(str, e["loc"])), "what": e["msg"]} for e in found]
    return Problem(
        422,
        "invalid",
        "The request is not valid: " + "; ".join(f"{e['where']}: {e['what']}" for e in errors),
        errors=errors,
    )


def error_response(error: Exception, scope: Scope) -> Response:
    """Turns an error into its problem document. An unforeseen one is logged and says nothing about the inside."""
    app: FastAPI = scope["app"]
    if isinstance(error, Refused):
        return refusal_problem(error, app.state.statuses).response()
    problem = _problem_of(error)
    if problem.status == 500:
        log.error("unhandled", exc_info=error, extra={"path": scope["path"]})
    if problem.status == 405:  # Starlette names the methods of the path's first route only
        problem.headers = {"Allow": ", ".join(sorted(_methods(app, scope["path"])))}
    return problem.response()


def _methods(app: FastAPI, path: str) -> set[str]:
    routes = [route for route in app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return {method for route in routes for method in route.methods or ()}


async def _respond(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope)


def install(app: FastAPI) -> None:
    for kind in (
        Problem,
        Refused,
        StaleVersion,
        KeyReused,
        Contended,
        Unavailable,
        OperatorError,
        RequestValidationError,
        HTTPException,
        *CONNECTION_ERRORS,
        Exception,
    ):
        app.add_exception_handler(kind, _respond)
