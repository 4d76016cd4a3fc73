"""A service that is down stops no other: carts work, orders wait, and continue when it is back.

The services run as `till up --split` starts them, each in a process of its own.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack

import httpx
import psutil
import pytest

from infra.local.processes.ports import free_ports
from infra.local.processes.process import recorded
from infra.local.stack import up
from infra.local.throwaway import settings_of
from infra.settings import Settings
from tests.e2e.provider import moved, provider
from tests.e2e.shop import (
    Shop,
    buy,
    new_sku,
    open_cart,
    order,
    put_in,
    put_product,
    register_schemas,
    settled,
    started,
)
from tests.till import eventually, is_there


@pytest.fixture
def registry(stack: Settings) -> Iterator[psutil.Process]:
    """Yields a server that all tests share, and starts it again if a test has stopped it."""
    [process] = [process for process in recorded(stack.home) if process.name == "registry"]
    yield psutil.Process(process.pid)
    asyncio.run(up(stack, servers_only=True))


@pytest.fixture
def environment(stack_environment: dict[str, str]) -> dict[str, str]:
    register_schemas(stack_environment["TILL_HOME"], settings_of(stack_environment))
    return stack_environment | {"TILL_PSP_PORT": str(free_ports(1)[0]), "TILL_PSP_TIMEOUT": "1"}


Starting = AbstractContextManager[Shop]


def at_once(processes: ExitStack, starting: Sequence[Starting]) -> list[Shop]:
    """Starts the services at the same time; they end with the stack."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(processes.enter_context, starting))


def worker(environment: dict[str, str], name: str) -> Starting:
    return started(environment, "worker", module=f"services.{name}")


def has_status(guest: httpx.Client, path: str, status: str) -> bool:
    """Tells whether the order or payment at this path has this status. A problem document has another one."""
    return bool(guest.get(path).json()["status"] == status)


def kill(*shops: Shop) -> None:
    for shop in shops:
        shop.process.kill()
        shop.process.wait()


def test_an_order_goes_as_far_as_it_can_and_further_with_each_service_that_is_back(
    environment: dict[str, str], registry: psutil.Process
) -> None:
    names = ("cart", "order", "catalog", "payment")
    with ExitStack() as processes, ExitStack() as psp:
        psp.enter_context(provider(environment))
        starting = [started(environment, "api"), *(worker(environment, name) for name in names)]
        api, _, _, catalog, payment = at_once(processes, starting)
        operator, ann = (processes.enter_context(client) for client in (api.staff("operator"), api.guest()))
        mug = put_product(operator, new_sku(), stock=5)
        assert settled(ann, buy(ann, mug))["status"] == "confirmed"

        registry.kill()
        kill(catalog, payment)
        psp.close()

        cart = open_cart(ann)
        put_in(ann, cart, mug, 3)
        assert ann.put(f"{cart}/items/{mug.sku}", json={"quantity": 1}).status_code == 200
        path = buy(ann, mug)
        eventually(lambda: has_status(ann, path, "placed"), "without the catalog the order is placed and waits")

        processes.enter_context(worker(environment, "catalog"))
        eventually(lambda: has_status(ann, path, "reserved"), "without payment the order is reserved and waits")

        processes.enter_context(worker(environment, "payment"))
        wanted = f"/v1/payments/{order(ann, path)['payment_id']}"
        eventually(lambda: has_status(ann, wanted, "authorizing"), "the provider is to be asked")
        assert not is_there(registry), "the registry ran, so this shows nothing about working without it"

        with provider(environment) as url:
            bought = settled(ann, path)
            assert bought["status"] == "confirmed"
            expected = ["authorized", "captured"]
            eventually(lambda: moved(url, bought["payment_id"]) == expected, "the money is taken, once")
