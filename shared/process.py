"""Runs services as a process: HTTP, relay, consumers and deadlines, together or apart, until told to stop."""

import argparse
import asyncio
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Literal, get_args

import uvicorn
import uvloop
from fastapi import APIRouter

from shared import crashpoints, logs
from shared.database import AWAY
from shared.errors import OperatorError
from shared.http.app import Readiness, create_app
from shared.http.metrics import Gather, Sample
from shared.service import Runtime, Service, open_service
from shared.settings import Settings
from shared.store import TOO_LARGE

log = logging.getLogger(__name__)

Part = Literal["all", "api", "worker"]
Routers = Callable[[Settings, Sequence[Runtime]], Sequence[APIRouter]]
"""Routes that belong to no single service."""
DRAIN_SECONDS = 3


def main(
    title: str,
    services: Callable[[Settings], Sequence[Service]],
    port: Callable[[Settings], int],
    routers: Routers = lambda _settings, _runtimes: (),
) -> None:
    """`api` serves HTTP, `worker` runs relay, consumers and deadlines (and answers for its health), `all` does both."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("part", nargs="?", choices=get_args(Part), default="all")
    parser.add_argument("--port", type=int, help="instead of the port of the settings")
    arguments = parser.parse_args()
    try:
        settings = Settings.load()
        logs.configure(settings)
        crashpoints.arm(settings.crash_at)
        _collect_garbage_less_often()
        uvloop.run(
            _run(
                title,
                services(settings),
                settings,
                arguments.port or port(settings),
                arguments.part,
                routers,
            )
        )
    except OperatorError as error:
        raise SystemExit(f"error: {error.message}\n  → {error.hint}") from error


def _collect_garbage_less_often() -> None:
    """What start-up made lives for good, and so do remembered states: scanning them again and again took a
    tenth of the CPU. Reference counting frees the rest; the collector is only for cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _run(
    title: str,
    services: Sequence[Service],
    settings: Settings,
    port: int,
    part: Part,
    routers: Routers,
) -> None:
    async with AsyncExitStack() as stack:
        runtimes = [await stack.enter_async_context(open_service(service, settings)) for service in services]
        served = [*routers(settings, runtimes), *(r.service.router(r) for r in runtimes)] if part != "worker" else []
        statuses = {code: status for service in services for code, status in service.statuses.items()}
        statuses[TOO_LARGE] = 413
        app = create_app(settings, title, served, statuses, _readiness(runtimes), _gather(runtimes))
        async with asyncio.TaskGroup() as tasks:
            background = tasks.create_task(_work(runtimes, part))
            log.info("started", extra={"services": [s.name for s in services], "part": part, "port": port})
            await _serve(app, settings, port)
            # The server has answered all it accepted. What is committed is in the outbox: give it a moment to leave.
            if part != "api":
                await _drain(runtimes)
            background.cancel()


async def _work(runtimes: Sequence[Runtime], part: Part) -> None:
    async with asyncio.TaskGroup() as tasks:
        for runtime in runtimes:
            for beside in runtime.beside_api:
                tasks.create_task(beside)
            if part != "api":
                runtime.work(tasks)


async def _serve(app: object, settings: Settings, port: int) -> None:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=settings.shop_host,
        port=port,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
    )
    await _Server(config).serve()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn raises the signal again when it has stopped, and that would be our end: the outbox is not empty."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def _drain(runtimes: Sequence[Runtime]) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await asyncio.gather(*(runtime.relay.drained() for runtime in runtimes))
    except (TimeoutError, *AWAY):
        log.warning("stopping with messages in the outbox; they leave at the next start")


def _readiness(runtimes: Sequence[Runtime]) -> Readiness:
    async def lacking() -> dict[str, str]:
        reasons: dict[str, str] = {}
        for runtime in runtimes:
            try:
                await runtime.pool.fetchval("SELECT 1")
            except AWAY as away:
                reasons[f"PostgreSQL ({runtime.service.name})"] = str(away) or type(away).__name__
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
            except AWAY:
                continue
            found.append(("till_outbox_messages", service, waiting))
            found.append(("till_relay_published", service, runtime.relay.published))
            found += [
                ("till_consumer_offset", {"consumer": c, "topic": t, "partition": str(p)}, n) for c, t, p, n in offsets
            ]
        return found

    return samples
