"""Runs services as a process until a signal stops it: HTTP, relay, consumers and schedulers, together or apart."""

import argparse
import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Literal, TypeVar, get_args

import uvicorn
import uvloop
from fastapi import APIRouter

from shared import logs
from shared.errors import OperatorError
from shared.http.app import Readiness, create_app
from shared.http.metrics import Gather, Sample
from shared.recovery import crash_points
from shared.service import Runtime, Service, open_service
from shared.settings import Settings
from shared.store.database import CONNECTION_ERRORS
from shared.store.event_store import TOO_LARGE

log = logging.getLogger(__name__)

Part = Literal["all", "api", "worker"]
Loaded = TypeVar("Loaded", bound=Settings)
Routers = Callable[[Loaded, Sequence[Runtime]], Sequence[APIRouter]]
"""Makes the routes that belong to no single service."""
DRAIN_SECONDS = 3


def main(
    title: str,
    settings_type: type[Loaded],
    services: Callable[[Loaded], Sequence[Service]],
    address: Callable[[Loaded], tuple[str, int]],
    routers: Routers[Loaded] = lambda _settings, _runtimes: (),
) -> None:
    """Runs the part that the command line names: `api` serves HTTP, `worker` does the rest (and serves `/healthz`)."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("part", nargs="?", choices=get_args(Part), default="all")
    parser.add_argument("--port", type=int, help="instead of the port of the settings")
    arguments = parser.parse_args()
    try:
        settings = settings_type.load()
        host, port = address(settings)
        logs.configure(settings)
        crash_points.arm(settings.crash_at)
        _collect_garbage_less_often()
        uvloop.run(
            _run(
                title,
                services(settings),
                settings,
                (host, arguments.port or port),
                arguments.part,
                routers,
            )
        )
    except OperatorError as error:
        raise SystemExit(f"error: {error.message}\n  → {error.hint}") from error


def _collect_garbage_less_often() -> None:
    """Makes the cycle collector run rarely: scanning the objects of the start and the cached states again and again
    took a tenth of the CPU. Reference counting frees everything but cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _run(
    title: str,
    services: Sequence[Service],
    settings: Loaded,
    address: tuple[str, int],
    part: Part,
    routers: Routers[Loaded],
) -> None:
    async with AsyncExitStack() as stack:
        runtimes = [await stack.enter_async_context(open_service(service, settings)) for service in services]
        served = [*routers(settings, runtimes), *(r.service.router(r) for r in runtimes)] if part != "worker" else []
        statuses = {code: status for service in services for code, status in service.statuses.items()}
        statuses[TOO_LARGE] = 413
        app = create_app(settings, title, served, statuses, _readiness(runtimes), _gather(runtimes))
        async with asyncio.TaskGroup() as tasks:
            background = tasks.create_task(_work(runtimes, part))
            log.info("started", extra={"services": [s.name for s in services], "part": part, "port": address[1]})
            await _serve(app, *address)
            # The server has answered every request. Their events are in the outbox: let the relay publish them.
            if part != "api":
                await _drain(runtimes)
            background.cancel()


async def _work(runtimes: Sequence[Runtime], part: Part) -> None:
    async with asyncio.TaskGroup() as tasks:
        for runtime in runtimes:
            if part != "worker":
                for loop in runtime.background("api"):
                    tasks.create_task(loop)
            if part != "api":
                runtime.work(tasks)


async def _serve(app: object, host: str, port: int) -> None:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
    )
    await _Server(config).serve()


class _Server(uvicorn.Server):
    """Uvicorn's server, except that a signal ends the server and not the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keeps Uvicorn from raising the signal again after it has stopped: the outbox may not be empty yet."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def _drain(runtimes: Sequence[Runtime]) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await asyncio.gather(*(runtime.relay.wait_until_drained() for runtime in runtimes))
    except (TimeoutError, *CONNECTION_ERRORS):
        log.warning("stopping with messages in the outbox; they are published after the next start")


def _readiness(runtimes: Sequence[Runtime]) -> Readiness:
    async def lacking() -> dict[str, str]:
        reasons: dict[str, str] = {}
        for runtime in runtimes:
            try:
                await runtime.pool.fetchval("SELECT 1")
            except CONNECTION_ERRORS as error:
                reasons[f"PostgreSQL ({runtime.service.name})"] = str(error) or type(error).__name__
        return reasons

    return lacking


def _gather(runtimes: Sequence[Runtime]) -> Gather:
    async def samples() -> list[Sample]:
        found: list[Sample] = []
        for runtime in runtimes:
            service = {"service": runtime.service.name}
            try:
                waiting = await runtime.pool.fetchval("SELECT count(*) FROM outbox")
                offsets = await runtime.pool.fetch("SELECT consumer, topic, partition, next_offset FROM offsets")
            except CONNECTION_ERRORS:
                continue
            found.append(("till_outbox_messages", service, waiting))
            found.append(("till_relay_published", service, runtime.relay.published))
            found += [
                ("till_consumer_offset", {"consumer": c, "topic": t, "partition": str(p)}, n) for c, t, p, n in offsets
            ]
        return found

    return samples
