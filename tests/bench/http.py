"""Measures `POST items`, stored durably, next to a FastAPI handler on the same server that does nothing."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from infra.local.processes.ports import free_ports
from infra.settings import Settings
from shared.http.auth import Tokens
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CONCURRENCY, Stopwatch
from tests.bench.parts.fast_path import cpu_per_request

EACH = 300
PER_CART = 90
SKU = "BENCH-1"
ITEM = b'{"sku":"BENCH-1","quantity":1}'


async def run(settings: Settings) -> list[Figure]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    port, worker_port = free_ports(2)
    base = f"http://127.0.0.1:{port}"
    with _process(settings, "tests.bench.kit.http_server", "api", port) as server:
        await _ready(base, server)
        with _process(settings, "services.shop", "worker", worker_port):
            shoppers = await _shoppers(settings, base)
        # From here on the relay does not run, which has its own bench: this measures one process and PostgreSQL.
        latencies: list[float] = []

        async def items() -> float:
            requests = [[_request(path, token) for path in await _carts(base, token)] for token in shoppers]
            return await _load(port, requests, latencies)

        async def nothing() -> float:
            cart = "/noop/0190b1de-0000-7000-8000-000000000001/items"
            return await _load(port, [[_request(cart, token)] for token in shoppers], [])

        async def nothing_taken() -> float:
            return await _load(port, [[_request("/noop", token)] for token in shoppers], [])

        same_request = await side_by_side(items, nothing)
        no_request = await side_by_side(items, nothing_taken)
    p99 = statistics.quantiles(latencies, n=100)[98] * 1000
    return [
        Figure(
            "POST items, 32 at once, FastAPI taking the same and doing nothing",
            *same_request,
            "requests/s",
            at_least=0.65,
        ),
        Figure("POST items, 32 at once, FastAPI taking nothing", *no_request, "requests/s"),
        Figure("POST items, p99 at that load", p99, p99, "ms"),
        Figure(
            "CPU of a request up to its endpoint, fast path (plain FastAPI)", *await cpu_per_request(settings), "µs"
        ),
    ]


@contextmanager
def _process(settings: Settings, module: str, part: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", module, part, "--port", str(port)]
    quiet_and_patient = {"TILL_LOG_LEVEL": "ERROR", "TILL_MIN_POSITION_TIMEOUT": "60"}
    environment = os.environ | settings.environment() | quiet_and_patient
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


async def _ready(base: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    async with httpx.AsyncClient(base_url=base) as http:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if (await http.get("/readyz")).is_success:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)
    raise RuntimeError("the server did not start")


async def _shoppers(settings: Settings, base: str) -> list[str]:
    operator = Tokens(settings).mint("bench", ["operator"], 3600)
    async with httpx.AsyncClient(base_url=base, timeout=70) as http:
        product = {"name": "Bench", "price": {"amount": 100, "currency": "EUR"}, "stock": 1}
        listed = await http.put(f"/v1/products/{SKU}", json=product, headers={"Authorization": f"Bearer {operator}"})
        listed.raise_for_status()
        tokens: list[str] = [(await http.post("/v1/sessions")).json()["token"] for _ in range(CONCURRENCY)]
        cart = (await http.post("/v1/carts", headers={"Authorization": f"Bearer {tokens[0]}"})).json()["cart_id"]
        seen = await http.post(
            f"/v1/carts/{cart}/items",
            content=ITEM,
            headers={"Authorization": f"Bearer {tokens[0]}", "Min-Position": listed.headers["Event-Position"]},
        )
        seen.raise_for_status()
    return tokens


async def _carts(base: str, token: str) -> list[str]:
    """Opens as many carts as a shopper fills in a round."""
    async with httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {token}"}) as http:
        opened = [(await http.post("/v1/carts")).json()["cart_id"] for _ in range(EACH // PER_CART + 1)]
    return [f"/v1/carts/{cart_id}/items" for cart_id in opened]


def _request(path: str, token: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(ITEM)}\r\n\r\n".encode() + ITEM


async def _load(port: int, shoppers: list[list[bytes]], latencies: list[float]) -> float:
    with Stopwatch() as watch:
        await asyncio.gather(*(_shopper(port, requests, latencies) for requests in shoppers))
    return len(shoppers) * EACH / watch.seconds


async def _shopper(port: int, requests: list[bytes], latencies: list[float]) -> None:
    """Sends requests with a client so thin that it does not distort the measurement."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for n in range(EACH):
        start = time.perf_counter()
        writer.write(requests[n // PER_CART % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        latencies.append(time.perf_counter() - start)
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"the shop answered {head!r} {body!r}")
    writer.close()
