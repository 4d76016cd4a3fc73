"""The CPU that one request costs between server and endpoint: on the fast path, and by plain FastAPI."""

import time
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from starlette.types import ASGIApp, Message, Scope

from services.cart.bodies import NewItem
from shared.http.app import create_app
from shared.http.auth import Tokens
from shared.http.calls import Authenticated
from shared.http.responses import answer_list
from shared.settings import Settings
from tests.bench.figures import side_by_side

REQUESTS = 2_000
PATH = "/items/0190b1de-0000-7000-8000-000000000001"
ITEM = b'{"sku":"BENCH-1","quantity":1}'


async def cpu_per_request(settings: Settings) -> tuple[float, float]:
    """Returns microseconds on the fast path and by plain FastAPI, with the parameters and body of `POST items`."""
    fast, plain = _app(settings, fast_path=True), _app(settings, fast_path=False)
    scope = _scope(Tokens(settings).mint("bench", ["customer"], 3600))
    return await side_by_side(lambda: _measure(fast, scope), lambda: _measure(plain, scope))


def _app(settings: Settings, fast_path: bool) -> ASGIApp:
    routes = APIRouter()

    @routes.post("/items/{cart_id}")
    async def add(cart_id: UUID, item: NewItem, call: Authenticated) -> Response:
        return answer_list({})

    async def ready() -> dict[str, str]:
        return {}

    async def no_samples() -> list[Any]:
        return []

    unlimited = settings.model_copy(update={"rate_limit": 0})
    return create_app(unlimited, "bench", [routes], {}, ready, no_samples, fast_path)


def _scope(token: str) -> dict[str, Any]:
    headers = [
        (b"host", b"shop"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(ITEM)),
    ]
    path = {"path": PATH, "raw_path": PATH.encode(), "query_string": b"", "root_path": ""}
    return {"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "headers": headers} | path


async def _measure(app: ASGIApp, scope: Scope) -> float:
    async def receive() -> Message:
        return {"type": "http.request", "body": ITEM, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise RuntimeError(f"answered {message['status']}")

    start = time.process_time()
    for _ in range(REQUESTS):
        await app(dict(scope), receive, send)
    return (time.process_time() - start) / REQUESTS * 1e6
