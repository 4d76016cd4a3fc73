"""Runs the shop as a real process and does with it what tests need: start, stop, send requests, query its databases."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from uuid_utils import uuid7

from infra.local.processes.ports import free_ports
from infra.local.throwaway import settings_of
from infra.settings import Settings
from services.common.roles import Role
from shared.http.auth import Tokens
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from tests.integration.shared.topics import Record, read_topic
from tests.till import eventually

START_SECONDS = 120.0
STOP_SECONDS = 60.0


@dataclass
class Shop:
    """A running process of `python -m services.shop`."""

    environment: dict[str, str]
    port: int
    process: subprocess.Popen[bytes]
    log: Path
    positions: list[str] = field(default_factory=list)
    """The position of every write that was answered with success, none of which may ever be lost."""

    @property
    def settings(self) -> Settings:
        return settings_of(self.environment)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str = "") -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=15, event_hooks={"response": [self._note]})

    def guest(self) -> httpx.Client:
        with self.client() as anyone:
            session = anyone.post("/v1/sessions")
        assert session.status_code == 201, session.text
        return self.client(session.json()["token"])

    def staff(self, *roles: Role) -> httpx.Client:
        return self.client(Tokens(self.settings).mint(f"{roles[0]}-{uuid7()}", roles, 3600))

    def stop(self) -> int:
        """Sends SIGTERM, as an operator would, and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def fetch(self, service: str, query: str, *arguments: Any) -> list[Any]:
        """Queries a service's database."""

        async def ask() -> list[Any]:
            url = self.settings.database_url.get_secret_value()
            connection = await asyncpg.connect(url, server_settings={"search_path": service})
            try:
                return list(await connection.fetch(query, *arguments))
            finally:
                await connection.close()

        return asyncio.run(ask())

    def written(self) -> dict[str, int]:
        """Counts what requests have made each service store: events, and answers to idempotency keys.

        What services do on their own (with an order of an earlier test) goes on meanwhile and is not counted.
        """
        return {
            f"{service} {table}": self.fetch(service, f"SELECT count(*) FROM {table} WHERE actor NOT LIKE '%:%'")[0][0]
            for service in ("cart", "catalog")
            for table in ("events", "answers")
        }

    def wait_until_published(self) -> None:
        """Waits until the outboxes are empty."""
        eventually(
            lambda: not any(self.fetch(service, "SELECT FROM outbox LIMIT 1") for service in ("cart", "catalog")),
            "the outboxes are empty",
        )

    def topic(self, name: str) -> list[Record]:
        return read_topic(self.settings, name)

    def _note(self, response: httpx.Response) -> None:
        if response.is_success and response.request.method != "GET" and "Event-Position" in response.headers:
            self.positions.append(response.headers["Event-Position"])


@contextmanager
def started(environment: dict[str, str], *arguments: str, module: str = "services.shop", **more: str) -> Iterator[Shop]:
    """Starts the process, yields it when it is ready, and kills it at the end if it still runs."""
    register_schemas(environment["TILL_HOME"], settings_of(environment))
    [port] = free_ports(1)
    own = environment | {"TILL_LOG_FORMAT": "text", "TILL_MIN_POSITION_TIMEOUT": "6"} | more
    log = Path(environment["TILL_HOME"]) / f"{module}-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, "--port", str(port)],
            env=own,
            cwd=environment["TILL_HOME"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    shop = Shop(own, port, process, log)
    try:
        _until_ready(shop)
        yield shop
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


REGISTERED: set[str] = set()


def register_schemas(home: str, settings: Settings) -> None:
    """Pushes the schemas, once for each stack."""

    async def register() -> None:
        async with Registry(settings) as registry:
            await push(registry, load_schemas())

    if home not in REGISTERED:
        asyncio.run(register())
        REGISTERED.add(home)


def _until_ready(shop: Shop) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"{shop.url}/readyz", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert shop.process.poll() is None, f"it died while starting:\n{shop.log.read_text()}"
        assert time.monotonic() < deadline, f"not ready:\n{shop.log.read_text()}"
        time.sleep(0.05)


def new_sku() -> str:
    return f"MUG-{uuid7().hex[-12:].upper()}"


def price(cents: int, currency: str = "EUR") -> dict[str, Any]:
    return {"amount": cents, "currency": currency}


@dataclass(frozen=True)
class Product:
    sku: str
    position: str
    """The position of the latest change. A cart that has reached it knows the product."""


def put_product(operator: httpx.Client, sku: str, cents: int = 1190, currency: str = "EUR", stock: int = 50) -> Product:
    answer = operator.put(
        f"/v1/products/{sku}", json={"name": "Enamel mug ☕", "price": price(cents, currency), "stock": stock}
    )
    assert answer.status_code == 200, answer.text
    return Product(sku, answer.headers["Event-Position"])


def put_in(guest: httpx.Client, cart: str, product: Product, quantity: int = 1) -> httpx.Response:
    def reached() -> httpx.Response | None:
        answer = guest.post(
            f"{cart}/items",
            json={"sku": product.sku, "quantity": quantity},
            headers={"Min-Position": product.position},
        )
        return None if answer.status_code == 504 else answer

    # A shop that was killed before this one holds its partitions until its session ends.
    answer: httpx.Response = eventually(reached, "the cart knows the product", 30)
    assert answer.status_code == 200, answer.text
    return answer


def open_cart(guest: httpx.Client) -> str:
    """Opens a cart and returns its path."""
    answer = guest.post("/v1/carts")
    assert answer.status_code == 201, answer.text
    return str(answer.headers["Location"])


FINAL = ("confirmed", "cancelled")
CHECKOUT: dict[str, Any] = {
    "payment_token": "tok_ok",
    "shipping": {"method": "express", "name": "Ann Example", "address": "1 Mill Lane\nOldtown"},
}


def buy(guest: httpx.Client, product: Product, quantity: int = 1, token: str = "tok_ok") -> str:
    """Checks out a cart with this product and returns the path of the order."""
    cart = open_cart(guest)
    put_in(guest, cart, product, quantity)
    answer = guest.post(f"{cart}/checkout", json=CHECKOUT | {"payment_token": token})
    assert answer.status_code == 202, answer.text
    return str(answer.headers["Location"])


def order(guest: httpx.Client, path: str) -> dict[str, Any]:
    answer = guest.get(path)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def settled(guest: httpx.Client, path: str) -> dict[str, Any]:
    """Waits until the order is confirmed or cancelled, and returns it."""

    def final() -> dict[str, Any] | None:
        answer = guest.get(path)
        if answer.status_code == 404:
            return None  # under load it takes longer than the shop's patience to be placed
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document if document["status"] in FINAL else None

    found: dict[str, Any] = eventually(final, f"{path} is final", 60)
    return found


def versions(records: Sequence[Record], stream_id: str) -> list[int]:
    """Returns the versions of a stream's records, in the order of the topic."""
    return [int(r.header("ce_streamversion")) for r in sorted(records) if r.header("ce_subject") == stream_id]
