"""Runs simple endpoints without FastAPI's machinery. It is an optimisation; FastAPI could serve every one of them.

FastAPI resolves each parameter of each request through its dependency machinery, which costs more CPU than deciding and
storing the event (ADR 6). The fast path takes over the endpoints that need little of it: path parameters, one JSON
body, one dependency that reads the request, and a Response in return. FastAPI still documents them, and serves every
other endpoint.

`create_app(..., fast_path=False)` turns it off, and the same endpoints are served by plain FastAPI. That is the test
oracle: tests/unit/shared/http/test_fast_path.py sends the same requests both ways and compares the answers. The known
differences: the fast path does not look at Content-Type, a missing body is 400 (json-invalid) instead of 422, and the
answer to an invalid request names the errors of the first invalid part only (the path, then the body).

Measured gain: a request like `POST items` costs 60 µs of CPU without its endpoint, and 300 µs by plain FastAPI (`till
bench http` prints both). Durably storing the event takes less than that difference.
"""

import re
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from shared.http.problems import error_response

Run = Callable[[Request], Awaitable[Response]]


class Served(NamedTuple):
    """A route of the application, and how it is served."""

    match: Callable[[str], re.Match[str] | None]
    route: Route
    run: Run | None
    """The function that serves the route; None if FastAPI has to."""


class FastPath:
    """Stands in front of a FastAPI application and answers the requests to its simple endpoints itself."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._routes: dict[str, list[Served]] = {}
        for route in app.routes:
            if isinstance(route, Route):
                served = Served(route.path_regex.match, route, _runner(route))
                for method in route.methods or ():
                    self._routes.setdefault(method, []).append(served)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for match, route, run in self._routes.get(scope["method"], ()):
                if found := match(scope["path"]):
                    if run is None:
                        break
                    scope["app"], scope["route"], scope["path_params"] = self._app, route, found.groupdict()
                    try:
                        response = await run(Request(scope, receive))
                    except Exception as error:
                        response = error_response(error, scope)
                    return await response(scope, receive, send)
        return await self._app(scope, receive, send)


Adapters = list[tuple[str, TypeAdapter[Any]]]
Dependencies = list[tuple[str, Callable[[Request], Awaitable[Any]]]]


def _runner(route: Route) -> Run | None:
    """Returns a function that fills the endpoint's parameters and calls it, or None if only FastAPI can fill them."""
    if not isinstance(route, APIRoute) or route.dependencies:
        return None
    endpoint: Callable[..., Awaitable[Response]] = route.endpoint
    hints = get_type_hints(endpoint, include_extras=True)
    if not _is_response(hints.pop("return", None)):
        return None
    path: Adapters = []
    body: Adapters = []
    dependencies: Dependencies = []
    for name, hint in hints.items():
        dependency = _dependency(hint)
        if name in route.param_convertors:
            path.append((name, TypeAdapter(hint)))
        elif isinstance(hint, type) and issubclass(hint, BaseModel):
            body.append((name, TypeAdapter(hint)))
        elif dependency and list(signature(dependency).parameters) == ["request"]:
            dependencies.append((name, dependency))
        else:
            return None

    async def run(request: Request) -> Response:
        values: dict[str, Any] = {}
        for name, dependency in dependencies:
            values[name] = await dependency(request)
        for name, adapter in path:
            value = request.scope["path_params"][name]
            values[name] = _validated(("path", name), adapter.validator.validate_python, value)
        for name, adapter in body:
            values[name] = _validated(("body",), adapter.validator.validate_json, await request.body())
        return await endpoint(**values)

    return run


def _is_response(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Response)


def _dependency(hint: Any) -> Callable[..., Any] | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((extra.dependency for extra in get_args(hint) if isinstance(extra, Depends)), None)


def _validated(where: tuple[str, ...], validate: Callable[[Any], Any], value: Any) -> Any:
    try:
        return validate(value)
    except ValidationError as invalid:
        errors = [{**error, "loc": (*where, *error["loc"])} for error in invalid.errors(include_url=False)]
        raise RequestValidationError(errors) from invalid
