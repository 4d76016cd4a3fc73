"""Whole orders: cart, order, stock, payment and provider, through Kafka. Alone for their latency, many for their rate.

What they leave behind is checked as a simulation is: the figures of a shop that loses an order are worth nothing.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import psutil

from infra.cli.console import err
from infra.shoppers.evidence import auditor
from infra.shoppers.ledger import Ledger
from shared.registry import Registry, push
from shared.schemas import load_schemas
from shared.settings import Settings
from tests.bench.buying import ask, buy, come_in, opened, until_paid
from tests.bench.figures import Figure
from tests.bench.processes import Busy, Parts, started
from tests.bench.thin import connected

PROVIDER_MS = "20"
MOST_MS = 250
WARMUP, ALONE, MANY = 20, 150, 600
BUYERS = 16
PER_CUSTOMER = 10
"""Payments. Of twenty within minutes, the risk check would want a word with the customer."""
LOOKS_AGAIN_SECONDS = 0.003
SETTLE_SECONDS = 30.0

ONE = {"psp": "", "shop": "all"}
SPLIT = {"psp": "", "shop": "api", "catalog": "worker", "cart": "worker", "order": "worker", "payment": "worker"}


class Measured(NamedTuple):
    latencies: list[float]
    per_second: float
    cores: dict[str, float]
    violations: int


async def run(settings: Settings) -> list[Figure]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    one, split = await _measure(settings, ONE), await _measure(settings, SPLIT)
    percentiles = statistics.quantiles(one.latencies, n=100)
    violations = one.violations + split.violations
    return [
        Figure("checkout to confirmed, idle, p99 (the limit)", percentiles[98], MOST_MS, "ms", at_most=1),
        Figure("checkout to confirmed, idle, p50 (that limit)", percentiles[49], MOST_MS, "ms"),
        Figure("complete orders, split into 5 processes (in 1)", split.per_second, one.per_second, "orders/s"),
        *_busy("in 1", one),
        *_busy("split", split),
        Figure("violations in the books of all of them (one)", violations, 1, "", at_most=0),
    ]


def _busy(how: str, measured: Measured) -> Iterator[Figure]:
    cores = psutil.cpu_count() or 1
    for name, busy in sorted(measured.cores.items(), key=lambda pair: -pair[1]):
        yield Figure(f"  busy meanwhile, {how}: {name} (cores there are)", busy, cores, "cores")


async def _measure(settings: Settings, parts: Parts) -> Measured:
    with started(settings, parts, TILL_PSP_LATENCY_MS=PROVIDER_MS) as processes:
        async with auditor(settings) as books:
            ledger = await opened(settings, books)
            latencies = await _alone(settings, ledger)
            busy = Busy(processes)
            per_second, seconds = await _many(settings, ledger)
            cores = busy.cores(seconds)
            found = (await books.settle(ledger, SETTLE_SECONDS)).violations
    for violation in found:
        err.print(str(violation))
    return Measured(latencies, per_second, cores, len(found))


async def _alone(settings: Settings, ledger: Ledger) -> list[float]:
    """One at a time: milliseconds from sending the checkout until an answer says confirmed."""
    latencies = []
    async with connected(settings.shop_port) as shop:
        for n in range(WARMUP + ALONE):
            if n % PER_CUSTOMER == 0:
                await come_in(shop)
            order_id, sent = await buy(shop, ledger, n)
            while (await ask(shop, "GET", f"/v1/orders/{order_id}"))["status"] != "confirmed":
                await asyncio.sleep(LOOKS_AGAIN_SECONDS)
            latencies.append((time.perf_counter() - sent) * 1000)
            await asyncio.sleep(0.05)
    return latencies[WARMUP:]


async def _many(settings: Settings, ledger: Ledger) -> tuple[float, float]:
    """Orders a second, and in how many seconds: from the first cart until the last order is paid for."""
    customers = iter(range(MANY // PER_CUSTOMER))
    began = time.perf_counter()

    async def buy_while_there_are_customers() -> None:
        async with connected(settings.shop_port) as shop:
            for customer in customers:
                await come_in(shop)
                for n in range(PER_CUSTOMER):
                    await buy(shop, ledger, customer * PER_CUSTOMER + n)

    async with asyncio.TaskGroup() as buyers:
        for _ in range(BUYERS):
            buyers.create_task(buy_while_there_are_customers())
    await until_paid(settings, ledger)
    seconds = time.perf_counter() - began
    return MANY / seconds, seconds
