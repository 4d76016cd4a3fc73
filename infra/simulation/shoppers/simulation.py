"""Runs simulated shoppers side by side in a running shop, then audits its books."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random

import httpx

from infra.settings import Settings
from infra.simulation.audit.evidence import Audit, auditor
from infra.simulation.audit.ledger import Came, Ledger
from infra.simulation.shoppers.calls import Calls
from infra.simulation.shoppers.plans import visits
from infra.simulation.shoppers.shopper import Shopper
from infra.simulation.shoppers.steps import Product
from shared.errors import OperatorError
from shared.http.auth import Tokens
from shared.settings import HOST

ARRIVE_WITHIN_SECONDS = 1.0


@dataclass(frozen=True)
class Plan:
    shoppers: int
    seconds: float
    seed: int
    fraud: float
    """The share of fraudulent visits."""
    patience: float = 60.0
    """Seconds to wait for the last orders to be decided."""


async def simulate(settings: Settings, plan: Plan, ledger: Ledger) -> Audit:
    """Runs a plan. The same plan makes the same choices; how far shoppers get depends on the machine."""
    async with auditor(settings) as books:
        opening, products = await books.opening()
        if not products:
            raise OperatorError("The shelves are empty.", "Fill them with: till seed")
        ledger.note(opening)
        await _shop(settings, plan, products, ledger)
        return await books.settle(ledger, plan.patience)


async def _shop(settings: Settings, plan: Plan, products: Sequence[Product], ledger: Ledger) -> None:
    closes = time.monotonic() + plan.seconds
    staff = Tokens(settings).mint("simulated support", ["support"], plan.seconds + 3600)
    connections = httpx.Limits(max_connections=plan.shoppers + 1, max_keepalive_connections=plan.shoppers + 1)
    async with (
        httpx.AsyncClient(base_url=f"http://{HOST}:{settings.shop_port}", timeout=15, limits=connections) as http,
        asyncio.TaskGroup() as shoppers,
    ):

        def is_closing() -> bool:
            return time.monotonic() >= closes

        async def come_and_go(number: int) -> None:
            who = f"shopper {number}"
            shopper = Shopper(Calls(http, ledger, who), Calls(http, ledger, "support", staff), ledger, is_closing)
            await asyncio.sleep(Random(f"{plan.seed}/{number}").random() * ARRIVE_WITHIN_SECONDS)
            for visit in takewhile(lambda _: not is_closing(), visits(plan.seed, number, plan.fraud, products)):
                ledger.note(Came(who, visit.kind))
                await shopper.carry_out(visit)

        for number in range(plan.shoppers):
            shoppers.create_task(come_and_go(number))
