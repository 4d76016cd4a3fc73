"""The processes of the shop: all in one, or with `--split` the API and a worker for each service."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import httpx

from infra.local.processes.process import Process
from infra.local.servers.server import Launch, NotReady, Server
from infra.settings import Settings
from shared.errors import OperatorError
from shared.settings import HOST

SHOP = "shop"
SCHEMAS = "schemas"
ROOT = Path(__file__).parents[3]


def services(settings: Settings, depends_on: tuple[str, ...]) -> list[Server]:
    """Returns the processes. The payment provider is outside the shop: it depends on nothing, and nothing on it."""
    own = [_service(settings, SHOP, "api" if settings.split else "all", settings.shop_port, depends_on)]
    if settings.split:
        ports = {
            "catalog": settings.catalog_port,
            "cart": settings.cart_port,
            "order": settings.order_port,
            "payment": settings.payment_port,
        }
        own += [_service(settings, name, "worker", port, depends_on) for name, port in ports.items()]
    if "psp_url" not in settings.model_fields_set:
        own.append(_service(settings, "psp", "", settings.psp_port, ()))
    return own


def require_same_mode(settings: Settings, running: Mapping[str, Process]) -> None:
    if (shop := running.get(SHOP)) and (shop.version == "api") != settings.split:
        raise OperatorError(
            f"The shop is running {'split' if shop.version == 'api' else 'as one process'}.",
            "Stop it first: till down",
        )


def _service(settings: Settings, name: str, part: str, port: int, depends_on: tuple[str, ...]) -> Server:
    return Server(
        name=name,
        address=f"http://{HOST}:{port}",
        ports={f"TILL_{name.upper()}_PORT": port},
        prepare=partial(_prepare, settings, name, part),
        ready=partial(_ready, port, "/readyz" if part else "/healthz"),
        depends_on=depends_on,
    )


async def _prepare(settings: Settings, name: str, part: str) -> Launch:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return Launch(
        command=[sys.executable, "-m", f"services.{name}", *([part] if part else [])],
        version=part,
        env=settings.environment() | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


async def _ready(port: int, path: str) -> None:
    try:
        async with httpx.AsyncClient(timeout=5) as http:
            answer = await http.get(f"http://{HOST}:{port}{path}")
    except httpx.TransportError as error:
        raise NotReady(repr(error)) from error
    if not answer.is_success:
        raise NotReady(answer.text)
