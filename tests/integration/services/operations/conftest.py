"""A running shop in which simulated shoppers have bought, and ways to run commands, checks and SQL in it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import pytest

from infra.lake.reader import open_lake_reader
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from services.operations.verify.findings import Findings
from services.operations.verify.verify import CheckJob, VerifyRequest, run_job
from services.shop.services import shop_services
from tests.till import RunTill, Till, eventually, run_in_process

SERVICES = ("cart", "catalog", "order", "payment")
Check = Callable[..., Findings]


@pytest.fixture(scope="session")
def till() -> Iterator[Till]:
    with throwaway() as environment:
        till = Till(environment | {"TILL_PSP_LATENCY_MS": "1", "TILL_PSP_TIMEOUT": "1"})
        up = till("up", "--json")
        assert up.code == 0, up.err
        bought = till("simulate", "--shoppers", "6", "--seconds", "6", "--seed", "4", "--fraud", "0.2", "--json")
        assert bought.code == 0, bought.out + bought.err
        eventually(lambda: _is_quiet(settings_of(till.environment)), "no more events arrive")
        yield till


def _is_quiet(shop: Settings) -> bool:
    """Tells whether all messages have arrived: a simulation ends before the provider's last answers are recorded."""
    events = "SELECT " + " + ".join(f'(SELECT count(*) FROM "{name}".events)' for name in SERVICES)
    waiting = "SELECT FROM payment.deadlines " + "".join(f'UNION ALL SELECT FROM "{name}".outbox ' for name in SERVICES)

    async def look(connection: Any) -> list[Any]:
        before = await connection.fetchval(events)
        await asyncio.sleep(1)
        return [not await connection.fetch(waiting) and await connection.fetchval(events) == before]

    return bool(asyncio.run(_with_connection(shop, "public", look))[0])


@pytest.fixture(scope="session")
def run_till(till: Till) -> RunTill:
    return run_in_process(till.environment)


@pytest.fixture(scope="session")
def shop(till: Till) -> Settings:
    return settings_of(till.environment)


@pytest.fixture(scope="session")
def check(shop: Settings) -> Check:
    """Runs one check of the shop in this process; of several findings, returns those with `about` in the name."""

    def run(name: str, of: str = "", about: str = "", patience: float = 5.0, **changes: Any) -> Findings:
        settings = shop.model_copy(update=changes)
        request = VerifyRequest(settings, shop_services, None, patience, open_lake=open_lake_reader)
        [found] = [it for it in asyncio.run(run_job(request, CheckJob(name, of))) if about in it.check]
        return found

    return run


@pytest.fixture(scope="session")
def sql(shop: Settings) -> Callable[..., list[Any]]:
    """Executes a statement in the schema of a service."""

    def run(service: str, statement: str, *arguments: Any) -> list[Any]:
        return asyncio.run(_with_connection(shop, service, lambda connection: connection.fetch(statement, *arguments)))

    return run


async def _with_connection(
    settings: Settings, service: str, work: "Callable[[Any], Awaitable[list[Any]]]"
) -> list[Any]:
    connection = await asyncpg.connect(
        settings.database_url.get_secret_value(), server_settings={"search_path": service}
    )
    try:
        return list(await work(connection))
    finally:
        await connection.close()
