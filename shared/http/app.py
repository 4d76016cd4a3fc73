"""Builds the HTTP application of a process: routers, problems, body limit, tokens, health and metrics."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.http import openapi, problems
from shared.http.auth import Tokens
from shared.http.fast_path import FastPath
from shared.http.limits import RateLimit
from shared.http.metrics import CONTENT_TYPE, Counted, Gather, Metrics
from shared.http.problems import Problem, Statuses
from shared.settings import Settings

Readiness = Callable[[], Awaitable[dict[str, str]]]
"""Returns what the process needs and lacks at the moment, by name with the reason. Empty means ready."""


def create_app(
    settings: Settings,
    title: str,
    routers: Sequence[APIRouter],
    statuses: Statuses,
    readiness: Readiness,
    gather: Gather,
    fast_path: bool = True,
) -> ASGIApp:
    app = FastAPI(
        title=title,
        description="Every fact is an event, appended once, never changed.",
        version="1",
        strict_content_type=False,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.tokens = Tokens(settings)
    app.state.rate_limit = RateLimit(settings.rate_limit)
    app.state.statuses = statuses
    app.state.digest_key = settings.master_key.get_secret_value().encode()
    problems.install(app)
    openapi.document(app, routers)
    metrics = Metrics(gather)
    for router in routers:
        # Added flat: FastAPI searches an included router layer by layer, for every request.
        app.router.routes.extend(router.routes)

    @app.get("/healthz", tags=["process"], summary="Is the process alive?", responses=_status_example("alive"))
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    lacks = openapi.refusal(503, "not-ready", "PostgreSQL (service): it does not answer.")

    @app.get(
        "/readyz",
        tags=["process"],
        summary="Is the process ready to serve?",
        responses=_status_example("ready") | lacks,
    )
    async def readyz() -> Response:
        if lacking := await readiness():
            detail = "; ".join(f"{part}: {reason}" for part, reason in lacking.items())
            return Problem(503, "not-ready", detail, problems.RETRY_AFTER).response()
        return Response(b'{"status":"ready"}', media_type="application/json")

    @app.get("/metrics", tags=["process"], summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        return Response(await metrics.page(), media_type=CONTENT_TYPE)

    served: ASGIApp = FastPath(app) if fast_path else app
    return Counted(BodyLimit(served, settings.body_limit), metrics)


def _status_example(status: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": {"status": status}}}}}


class BodyLimit:
    """Refuses a body that is too large before it is read into memory, whether or not its length is declared."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length":  # the server passes on no more than was declared
                if value.isdigit() and int(value) <= self._limit:
                    await self._app(scope, receive, send)
                else:
                    await self._too_large().response()(scope, receive, send)
                return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise self._too_large()
            return message

        await self._app(scope, limited, send)

    def _too_large(self) -> Problem:
        return Problem(413, "body-too-large", f"The body may have at most {self._limit} bytes.")
