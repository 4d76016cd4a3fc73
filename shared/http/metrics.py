"""Metrics of a process for Prometheus: requests at the HTTP edge, and the progress of its logs."""

import time
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Sample = tuple[str, dict[str, str], float]
"""Name, labels and value of a gauge that is looked up when Prometheus asks."""
Gather = Callable[[], Awaitable[list[Sample]]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts requests, and renders the page that Prometheus reads, with the gauges that `gather` looks up."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "till_http_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "till_http_request_seconds", "Time to answer.", ["method", "route"], registry=self._registry
        )
        self._gauges: dict[str, Gauge] = {}
        # By method, route and status, because looking a metric up by its labels costs more than counting.
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        counted = self._counted.get((method, route, status))
        if counted is None:
            counted = self.requests.labels(method, route, status), self.seconds.labels(method, route)
            self._counted[method, route, status] = counted
        counted[0].inc()
        counted[1].observe(seconds)

    async def page(self) -> bytes:
        for name, labels, value in await self._gather():
            gauge = self._gauges.get(name)
            if gauge is None:
                described = name.removeprefix("till_").replace("_", " ").capitalize() + "."
                gauge = self._gauges[name] = Gauge(name, described, list(labels), registry=self._registry)
            gauge.labels(**labels).set(value)
        return generate_latest(self._registry)


class Counted:
    """Counts requests by route (`/v1/carts/{cart_id}`), of which there are few, and not by path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.count(scope["method"], route, status, time.perf_counter() - start)
