"""Routes that FastAPI documents and we run.

FastAPI resolves each parameter of each request through its dependency machinery, which costs more than
storing the event (see docs/adr/0006). Our endpoints need little of it: path parameters, one JSON body, one
dependency that reads the request. An endpoint that needs more is left to FastAPI.
"""

import re
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send

from shared.http.problems import answer


class LeanRoute(APIRoute):
    """For endpoints that return a Response. Use as `APIRouter(route_class=LeanRoute)`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        plan = _plan(endpoint, set(self.param_convertors))
        self.run = _run(endpoint, *plan) if plan else None


class Shortcut:
    """In front of FastAPI: what we run ourselves does not pass through its layers (see docs/adr/0006)."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._routes: dict[str, list[tuple[Callable[[str], re.Match[str] | None], LeanRoute]]] = {}
        for route in app.routes:
            if isinstance(route, LeanRoute) and route.run:
                for method in route.methods or ():
                    self._routes.setdefault(method, []).append((route.path_regex.match, route))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for matches, route in self._routes.get(scope["method"], ()):
                if found := matches(scope["path"]):
                    scope["app"], scope["route"], scope["path_params"] = self._app, route, found.groupdict()
                    response = await _answered(route, scope, receive)
                    return await response(scope, receive, send)
        return await self._app(scope, receive, send)


async def _answered(route: LeanRoute, scope: Scope, receive: Receive) -> Response:
    assert route.run
    try:
        return await route.run(Request(scope, receive))
    except Exception as error:
        return answer(error, scope)


Run = Callable[[Request], Awaitable[Response]]


def _run(
    endpoint: Callable[..., Awaitable[Response]], path: "Adapters", body: "Adapters", dependencies: "Dependencies"
) -> Run:
    async def run(request: Request) -> Response:
        values: dict[str, Any] = {}
        for name, dependency in dependencies:
            values[name] = await dependency(request)
        for name, adapter in path:
            values[name] = _validated(
                "path", name, adapter.validator.validate_python, request.scope["path_params"][name]
            )
        for name, adapter in body:
            values[name] = _validated("body", None, adapter.validator.validate_json, await request.body())
        return await endpoint(**values)

    return run


Adapters = list[tuple[str, TypeAdapter[Any]]]
Dependencies = list[tuple[str, Callable[[Request], Awaitable[Any]]]]


def _plan(endpoint: Callable[..., Any], in_path: set[str]) -> tuple[Adapters, Adapters, Dependencies] | None:
    """What each parameter is, looked at once. None: there is one that only FastAPI knows how to fill."""
    path: Adapters = []
    body: Adapters = []
    dependencies: Dependencies = []
    for name, hint in get_type_hints(endpoint, include_extras=True).items():
        dependency = _dependency(hint)
        if name == "return":
            continue
        if name in in_path:
            path.append((name, TypeAdapter(hint)))
        elif isinstance(hint, type) and issubclass(hint, BaseModel):
            body.append((name, TypeAdapter(hint)))
        elif dependency and list(signature(dependency).parameters) == ["request"]:
            dependencies.append((name, dependency))
        else:
            return None
    return path, body, dependencies


def dependencies_of(endpoint: Callable[..., Any]) -> list[Callable[..., Any]]:
    hints = get_type_hints(endpoint, include_extras=True).values()
    return [dependency for hint in hints if (dependency := _dependency(hint))]


def _dependency(hint: Any) -> Callable[..., Any] | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((extra.dependency for extra in get_args(hint) if isinstance(extra, Depends)), None)


def _validated(where: str, name: str | None, validate: Callable[[Any], Any], value: Any) -> Any:
    try:
        return validate(value)
    except ValidationError as invalid:
        prefix = (where,) if name is None else (where, name)
        errors = [{**error, "loc": (*prefix, *error["loc"])} for error in invalid.errors(include_url=False)]
        raise RequestValidationError(errors) from invalid
