"""A shop of its own in which people have bought: what is verified here is everything that a shop has."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import asyncpg
import pytest
from click.testing import CliRunner

from infra.cli import till as till_command
from infra.events import declared_services
from infra.lake_reader import open_lake
from infra.local.throwaway import settings_of, throwaway
from services.replay.checks.findings import Findings
from services.replay.verify import Ask, Job, run_job
from shared.settings import Settings
from tests.till import Ran, Till, eventually

SERVICES = ("cart", "catalog", "order", "payment")
Found = TypeVar("Found")
Check = Callable[..., Findings]
Asked = Callable[..., Ran]


@pytest.fixture(scope="session")
def till() -> Iterator[Till]:
    with throwaway() as environment:
        till = Till(environment | {"TILL_PSP_LATENCY_MS": "1", "TILL_PSP_TIMEOUT": "1"})
        up = till("up", "--json")
        assert up.code == 0, up.err
        bought = till("simulate", "--shoppers", "6", "--seconds", "6", "--seed", "4", "--fraud", "0.2", "--json")
        assert bought.code == 0, bought.out + bought.err
        eventually(lambda: _is_at_rest(settings_of(till.environment)), "the shop is at rest")
        yield till


def _is_at_rest(shop: Settings) -> bool:
    """The books balance before the last answers are written down."""
    events = "SELECT " + " + ".join(f'(SELECT count(*) FROM "{name}".events)' for name in SERVICES)
    waiting = "SELECT FROM payment.deadlines " + "".join(f'UNION ALL SELECT FROM "{name}".outbox ' for name in SERVICES)

    async def look(connection: Any) -> list[Any]:
        before = await connection.fetchval(events)
        await asyncio.sleep(1)
        return [not await connection.fetch(waiting) and await connection.fetchval(events) == before]

    return bool(asyncio.run(_ask(shop, "public", look))[0])


@pytest.fixture(scope="session")
def asked(till: Till) -> Asked:
    """`till` in this process: to start one of its own takes longer than what it does."""

    def run(*arguments: str, **settings: str) -> Ran:
        ran = CliRunner().invoke(till_command, arguments, env=till.environment | settings)
        return Ran(ran.exit_code, ran.stdout, ran.stderr or str(ran.exception or ""))

    return run


@pytest.fixture(scope="session")
def shop(till: Till) -> Settings:
    return settings_of(till.environment)


@pytest.fixture(scope="session")
def check(shop: Settings) -> Check:
    """One check of the whole shop, in this process. Of those that fold the same events, the one `about` this."""

    def run(name: str, of: str = "", about: str = "", patience: float = 5.0, **changes: Any) -> Findings:
        ask = Ask(shop.model_copy(update=changes), declared_services, None, patience, lake=open_lake)
        [found] = [it for it in asyncio.run(run_job(ask, Job(name, of))) if about in it.check]
        return found

    return run


@pytest.fixture(scope="session")
def sql(shop: Settings) -> Callable[..., list[Any]]:
    """A statement in the schema of a service."""

    def run(service: str, statement: str, *arguments: Any) -> list[Any]:
        return asyncio.run(_ask(shop, service, lambda connection: connection.fetch(statement, *arguments)))

    return run


async def _ask(settings: Settings, service: str, what: "Callable[[Any], Awaitable[list[Any]]]") -> list[Any]:
    connection = await asyncpg.connect(
        settings.database_url.get_secret_value(), server_settings={"search_path": service}
    )
    try:
        return list(await what(connection))
    finally:
        await connection.close()
