"""Whole orders: cart, order, stock, payment and provider, through Kafka. Alone for their latency, many for their rate.

What they leave behind is checked as a simulation is: the figures of a shop that loses an order are worth nothing.
It has to run before the benches that fill the topics with what is no order's.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

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
WARMUP, ROUNDS, ALONE, MANY = 20, 3, 100, 600
BUYERS = 16
PER_CUSTOMER = 10
"""Payments. Of twenty within minutes, the risk check would want a word with the customer."""
LOOKS_AGAIN_SECONDS, PAUSE_SECONDS, ONE_MAY_TAKE_SECONDS = 0.003, 0.05, 5.0
SETTLE_SECONDS = 30.0

ONE = {"psp": "", "shop": "all"}
SPLIT = {"psp": "", "shop": "api", "catalog": "worker", "cart": "worker", "order": "worker", "payment": "worker"}


class Measured(NamedTuple):
    latencies: list[list[float]]
    per_second: float
    cpu_ms: dict[str, float]
    """Of an order, by process."""
    violations: int


async def run(settings: Settings) -> list[Figure]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    one, split = await _measure(settings, ONE, ROUNDS), await _measure(settings, SPLIT, rounds=0)
    p50, p99 = (statistics.median(statistics.quantiles(it, n=100)[n] for it in one.latencies) for n in (49, 98))
    return [
        Figure("checkout to confirmed, idle, p99 (the limit)", p99, MOST_MS, "ms", at_most=1),
        Figure("checkout to confirmed, idle, p50 (that limit)", p50, MOST_MS, "ms"),
        Figure("complete orders, split into 5 processes (in 1)", split.per_second, one.per_second, "orders/s"),
        *_costs("in 1", one),
        *_costs("split", split),
        Figure("violations in the books of all of them (one)", one.violations + split.violations, 1, "", at_most=0),
    ]


def _costs(how: str, measured: Measured) -> Iterator[Figure]:
    """Where the work is."""
    total = sum(measured.cpu_ms.values())
    for name, ms in sorted(measured.cpu_ms.items(), key=lambda cost: -cost[1]):
        yield Figure(f"  CPU of an order, {how}: {name} (all of it)", ms, total, "ms")


async def _measure(settings: Settings, parts: Parts, rounds: int) -> Measured:
    """Latencies in rounds: of their percentiles the median counts, for a neighbour's noise is not ours."""
    with started(settings, parts, TILL_PSP_LATENCY_MS=PROVIDER_MS) as processes:
        async with auditor(settings) as books:
            ledger = await opened(settings, books)
            await _alone(settings, ledger, WARMUP)
            latencies = [await _alone(settings, ledger, ALONE) for _ in range(rounds)]
            busy = Busy(processes)
            per_second = await _many(settings, ledger)
            cpu_ms = {name: seconds * 1000 / MANY for name, seconds in busy.seconds().items()}
            found = (await books.settle(ledger, SETTLE_SECONDS)).violations
    for violation in found:
        err.print(str(violation))
    return Measured(latencies, per_second, cpu_ms, len(found))


async def _alone(settings: Settings, ledger: Ledger, number: int) -> list[float]:
    """One at a time: milliseconds from sending the checkout until an answer says confirmed."""
    latencies = []
    async with asyncio.timeout(number * ONE_MAY_TAKE_SECONDS), connected(settings.shop_port) as shop:
        for n in range(number):
            if n % PER_CUSTOMER == 0:
                await come_in(shop)
            order_id, sent = await buy(shop, ledger, n)
            while (await ask(shop, "GET", f"/v1/orders/{order_id}"))["status"] != "confirmed":
                await asyncio.sleep(LOOKS_AGAIN_SECONDS)
            latencies.append((time.perf_counter() - sent) * 1000)
            await asyncio.sleep(PAUSE_SECONDS)
    return latencies


async def _many(settings: Settings, ledger: Ledger) -> float:
    """Orders a second: from the first cart until the last order is paid for."""
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
    return MANY / (time.perf_counter() - began)
