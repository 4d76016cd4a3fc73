"""Measures whole orders through cart, catalog, order, payment and provider: one at a time for latency, many for rate.

Afterwards the books are audited as after a simulation, because figures of a shop that loses orders are worth nothing.
It has to run before the benches that fill the topics with events of no order.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from infra.cli.render.console import err
from infra.settings import Settings
from infra.simulation.audit.evidence import auditor
from infra.simulation.audit.ledger import Ledger
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from tests.bench.figures import Figure
from tests.bench.kit.buying import ask, buy, come_in, opened, until_paid
from tests.bench.kit.processes import Busy, Parts, started
from tests.bench.kit.thin import connected

PROVIDER_MS = "20"
MAX_LATENCY_MS = 250
WARMUP, ROUNDS, ORDERS_PER_ROUND, CONCURRENT_ORDERS = 20, 3, 100, 600
BUYERS = 16
PER_CUSTOMER = 10
"""Orders per customer. The risk check holds the payments of a customer with twenty within minutes."""
POLL_SECONDS, PAUSE_SECONDS, MAX_SECONDS_PER_ORDER = 0.003, 0.05, 5.0
SETTLE_SECONDS = 30.0

ONE = {"psp": "", "shop": "all"}
SPLIT = {"psp": "", "shop": "api", "catalog": "worker", "cart": "worker", "order": "worker", "payment": "worker"}


class Measured(NamedTuple):
    latencies: list[list[float]]
    per_second: float
    cpu_ms: dict[str, float]
    """CPU of one order in milliseconds, by process."""
    violations: int


async def run(settings: Settings) -> list[Figure]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    one, split = await _measure(settings, ONE, ROUNDS), await _measure(settings, SPLIT, rounds=0)
    p50, p99 = (statistics.median(statistics.quantiles(it, n=100)[n] for it in one.latencies) for n in (49, 98))
    return [
        Figure("checkout to confirmed, idle, p99 (the limit)", p99, MAX_LATENCY_MS, "ms", at_most=1),
        Figure("checkout to confirmed, idle, p50 (that limit)", p50, MAX_LATENCY_MS, "ms"),
        Figure("complete orders, split into 5 processes (in 1)", split.per_second, one.per_second, "orders/s"),
        *_costs("in 1", one),
        *_costs("split", split),
        Figure("violations in the books of all of them (one)", one.violations + split.violations, 1, "", at_most=0),
    ]


def _costs(how: str, measured: Measured) -> Iterator[Figure]:
    """Yields the CPU of an order by process."""
    total = sum(measured.cpu_ms.values())
    for name, ms in sorted(measured.cpu_ms.items(), key=lambda cost: -cost[1]):
        yield Figure(f"  CPU of an order, {how}: {name} (all of it)", ms, total, "ms")


async def _measure(settings: Settings, parts: Parts, rounds: int) -> Measured:
    """Measures latencies in rounds, of whose percentiles the median counts: it leaves out a noisy neighbour."""
    with started(settings, parts, TILL_PSP_LATENCY_MS=PROVIDER_MS) as processes:
        async with auditor(settings) as books:
            ledger = await opened(settings, books)
            await _one_at_a_time(settings, ledger, WARMUP)
            latencies = [await _one_at_a_time(settings, ledger, ORDERS_PER_ROUND) for _ in range(rounds)]
            busy = Busy(processes)
            per_second = await _concurrently(settings, ledger)
            cpu_ms = {name: seconds * 1000 / CONCURRENT_ORDERS for name, seconds in busy.seconds().items()}
            found = (await books.settle(ledger, SETTLE_SECONDS)).violations
    for violation in found:
        err.print(str(violation))
    return Measured(latencies, per_second, cpu_ms, len(found))


async def _one_at_a_time(settings: Settings, ledger: Ledger, number: int) -> list[float]:
    """Returns the milliseconds of each order from sending the checkout until an answer says confirmed."""
    latencies = []
    async with asyncio.timeout(number * MAX_SECONDS_PER_ORDER), connected(settings.shop_port) as shop:
        for n in range(number):
            if n % PER_CUSTOMER == 0:
                await come_in(shop)
            order_id, sent = await buy(shop, ledger, n)
            while (await ask(shop, "GET", f"/v1/orders/{order_id}"))["status"] != "confirmed":
                await asyncio.sleep(POLL_SECONDS)
            latencies.append((time.perf_counter() - sent) * 1000)
            await asyncio.sleep(PAUSE_SECONDS)
    return latencies


async def _concurrently(settings: Settings, ledger: Ledger) -> float:
    """Returns orders per second, from opening the first cart until the last order is paid."""
    customers = iter(range(CONCURRENT_ORDERS // PER_CUSTOMER))
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
    return CONCURRENT_ORDERS / (time.perf_counter() - began)
