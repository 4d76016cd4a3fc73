"""Crypto-shredding: name and address are stored nowhere in clear, and are unreadable once the key is deleted."""

import asyncio
import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import confluent_kafka
import httpx
import pytest
from pydantic import SecretStr
from uuid_utils import uuid7

from infra.settings import Settings
from services.cart.api import order_of
from services.cart.wiring import cart as cart_service
from services.common.vault import Vault, erase
from services.operations.dead_letters import LetterId, retry_letters
from shared.errors import OperatorError
from shared.recovery.dead_letter_queue import read_letters
from shared.service import open_service
from shared.store.database import Pool, open_pool
from tests.e2e.shop import Shop, new_sku, put_in, put_product, started
from tests.integration.services.refusing import refusing
from tests.integration.shared.topics import read_topic
from tests.till import Till, eventually

Result = TypeVar("Result")
Unsealed = dict[str, str] | None


@dataclass(frozen=True)
class Person:
    customer_id: str
    name: str
    address: str
    sealed: str
    """Name and address, encrypted, as they are in the events."""
    checkout: httpx.Response
    order: str
    """The path of the order."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.checkout.request.headers["Authorization"]}


@pytest.fixture(scope="module")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    with started(stack_environment) as shop:
        yield shop


@pytest.fixture(scope="module")
def ann(shop: Shop, stack: Settings) -> Person:
    """A customer who has checked out. The order service failed on it first, so there is a dead letter too."""
    name, address = f"Wilhelmina Quartermaine-{uuid7().hex}", f"17 Nightingale Row, {uuid7().hex} Thistlewick"
    with shop.staff("operator") as operator, shop.guest() as guest:
        mug = put_product(operator, new_sku())
        opened = guest.post("/v1/carts").json()
        path = f"/v1/carts/{opened['cart_id']}"
        put_in(guest, path, mug)
        order_id = order_of(opened["cart_id"])
        with refusing(shop, "order", f"order:{order_id}"):
            shipping = {"method": "standard", "name": name, "address": address}
            checkout = guest.post(
                f"{path}/checkout",
                json={"payment_token": "tok_ok", "shipping": shipping},
                headers={"Idempotency-Key": "till"},
            )
            assert checkout.status_code == 202, checkout.text
            letter = letter_about(stack, f"cart:{opened['cart_id']}")
        [retried] = asyncio.run(retry_letters(stack, [letter], "test"))
        assert retried.succeeded("retried")
        eventually(lambda: guest.get(f"/v1/orders/{order_id}").is_success, "the order is placed")
    for service in ("cart", "order", "catalog"):
        eventually(partial(is_published, shop, service), f"the outbox of {service} is empty")
    sealed = asyncio.run(recipient(stack, opened["cart_id"]))
    return Person(opened["customer_id"], name, address, sealed, checkout, f"/v1/orders/{order_id}")


def is_published(shop: Shop, service: str) -> bool:
    return not shop.fetch(service, "SELECT FROM outbox")


def letter_about(settings: Settings, stream_id: str) -> LetterId:
    async def find() -> list[LetterId]:
        found = [
            one.id.split("/") async for one in read_letters(settings, "order") if one.header("ce_subject") == stream_id
        ]
        return [LetterId("order", int(partition), int(offset)) for _, partition, offset in found]

    eventually(lambda: bool(asyncio.run(find())), "there is a dead letter")
    return asyncio.run(find())[0]


async def recipient(settings: Settings, cart_id: str) -> str:
    """Returns name and address as the event of the checkout holds them: sealed."""
    async with open_service(cart_service(settings), settings) as runtime:
        [event] = [e for e in await runtime.store.history(f"cart:{cart_id}") if e.type == "CartCheckedOut"]
        return str((await runtime.decoder.decode(event.value)).recipient)


def where(shop: Shop, *texts: str) -> list[set[str]]:
    """Finds, for each text, every table, topic and file that contains it as text, as bytes or in hexadecimal."""
    found: list[set[str]] = [set() for _ in texts]
    for place, content in everything(shop):
        for places, text in zip(found, map(str.encode, texts), strict=True):
            if text in content or text.hex().encode() in content:
                places.add(place)
    return found


def everything(shop: Shop) -> Iterator[tuple[str, bytes]]:
    yield from tables(shop)
    yield from topics(shop.settings)
    yield from files(Path(shop.environment["TILL_HOME"]))


def tables(shop: Shop) -> Iterator[tuple[str, bytes]]:
    """Yields the rows of all tables of all schemas."""
    names = shop.fetch(
        "public",
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
        " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
    )
    for (name,) in names:
        for (row,) in shop.fetch("public", f"SELECT t::text FROM {name} t"):
            yield f"table {name}", row.encode()


def topics(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """Yields key, value and headers of every message."""
    admin = confluent_kafka.Consumer({"bootstrap.servers": settings.kafka_bootstrap, "group.id": "list"})
    try:
        names = [topic for topic in admin.list_topics(timeout=10).topics if not topic.startswith(("__", "_till."))]
    finally:
        admin.close()
    for name in names:
        for record in read_topic(settings, name):
            parts = [record.key, record.value, *(value for _, value in record.headers)]
            yield f"topic {name}", b"\n".join(part or b"" for part in parts)


def files(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yields every file of the stack: write-ahead log, dead rows, segments, logs of processes."""
    # Unlike rglob, walk passes over folders that go away meanwhile: Kafka deletes topics of other tests.
    for path in (Path(folder, name) for folder, _, names in os.walk(home) for name in names):
        try:
            content = path.read_bytes() if path.is_file() and path.stat().st_blocks else b""
        except OSError:
            continue  # it went away meanwhile
        yield "disk", content


COPIES = {
    *("table cart.events", 'table "order".events'),
    *("topic cart.events", "topic order.events", "topic order.dlq"),
    "disk",
}


def test_name_and_address_are_nowhere_in_the_clear_and_their_sealed_form_is_everywhere(shop: Shop, ann: Person) -> None:
    sealed, name, address = where(shop, ann.sealed, ann.name, ann.address)
    assert sealed >= COPIES, "the search does not find every copy, so it shows nothing"
    assert (name, address) == (set(), set())


Work = Callable[[Vault, Pool], Awaitable[Result]]


def with_vault(settings: Settings, work: "Work[Result]") -> Result:
    async def run() -> Result:
        async with await open_pool(settings, "cart", size=4) as pool:
            return await work(Vault(pool, settings), pool)

    return asyncio.run(run())


def unsealed(settings: Settings, ann: Person) -> Unsealed:
    return with_vault(settings, lambda vault, _: vault.unseal(ann.customer_id, ann.sealed))


def digests(shop: Shop, customer_id: str) -> list[bytes]:
    return [row[0] for row in shop.fetch("cart", "SELECT request FROM answers WHERE actor = $1", customer_id)]


ERASED = {"method": "standard", "name": None, "address": None, "erased": True}


def shown(shop: Shop, ann: Person) -> list[Any]:
    """Returns name and address wherever the API shows them to her and to support: order, past order, timeline."""
    with shop.staff("support") as support, shop.client() as herself:
        herself.headers.update(ann.headers)
        orders = [client.get(ann.order, params=past) for client in (herself, support) for past in ({}, {"version": 1})]
        timelines = [client.get(f"{ann.order}/events") for client in (herself, support)]
    assert {answer.status_code for answer in [*orders, *timelines]} == {200}
    events = [item for timeline in timelines for item in timeline.json()["items"]]
    recipients = [item["data"]["recipient"] for item in events if "recipient" in item["data"]]
    assert len(recipients) == 4, "CartCheckedOut and OrderPlaced, for each of the two readers"
    return [order.json()["shipping"] for order in orders] + recipients


def test_name_and_address_are_shown_to_the_customer_and_to_support_only(shop: Shop, ann: Person) -> None:
    person = {"name": ann.name, "address": ann.address}
    assert shown(shop, ann) == [{"method": "standard", **person, "erased": False}] * 4 + [person] * 4
    with shop.guest() as bob:
        assert ann.name not in bob.get(ann.order).text
    name, address = where(shop, ann.name, ann.address)
    assert (name, address) == (set(), set()), "reading has left name or address in the clear"


def test_erasing_makes_every_copy_unreadable_and_can_be_done_again(
    shop: Shop, ann: Person, stack: Settings, stack_environment: dict[str, str]
) -> None:
    assert unsealed(stack, ann) == {"name": ann.name, "address": ann.address}
    request = ann.checkout.request
    signed = f"POST {request.url.path}\n".encode() + request.content
    key = stack.master_key.get_secret_value().encode()
    assert digests(shop, ann.customer_id) == [hmac.digest(key, signed, "sha256")], "the digest is not keyed"
    assert digests(shop, ann.customer_id) != [hashlib.sha256(signed).digest()], "anyone could confirm a guess"

    till = Till(stack_environment)
    erased = till("erase", ann.customer_id)
    assert erased.code == 0, erased.err
    assert "order.events  OrderPlaced.recipient" in erased.out
    assert shown(shop, ann) == [ERASED] * 4 + [None] * 4, "the process still shows them from a cache"
    assert unsealed(stack, ann) is None
    assert digests(shop, ann.customer_id) == [b""]
    assert where(shop, ann.sealed)[0] >= COPIES, "erasing has changed the log"

    again = till("erase", ann.customer_id, "--json")
    assert again.code == 0
    assert (again.document["erased"], again.document["checkouts"]) == (False, 1)

    with shop.client() as client:
        sent = {"Authorization": request.headers["Authorization"], "Idempotency-Key": "till"}
        repeated = client.post(request.url.path, content=request.content, headers=sent)
    assert repeated.status_code == 422, "a repeated request had a second effect"
    assert unsealed(stack, ann) is None


@dataclass(frozen=True)
class Backup:
    """The data was sealed with a key that has been erased since."""

    customer_id: str
    sealed: str
    wrapped_key: bytes

    async def restore(self, pool: Pool, customer_id: str) -> None:
        await pool.execute("INSERT INTO vault.customer_keys VALUES ($1, $2)", customer_id, self.wrapped_key)


@pytest.fixture
def backup(shop: Shop, stack: Settings) -> Backup:
    customer_id = str(uuid7())

    async def make(vault: Vault, pool: Pool) -> Backup:
        sealed = await vault.seal(customer_id, {"name": "Bob"})
        key = await pool.fetchval("SELECT wrapped_key FROM vault.customer_keys WHERE customer_id = $1", customer_id)
        assert await erase(pool, customer_id)
        return Backup(customer_id, sealed, key)

    return with_vault(stack, make)


def test_a_backup_of_a_key_is_of_no_use_without_the_master_key(backup: Backup, stack: Settings) -> None:
    async def restored(vault: Vault, pool: Pool) -> Unsealed:
        await backup.restore(pool, backup.customer_id)
        try:
            return await vault.unseal(backup.customer_id, backup.sealed)
        finally:
            await erase(pool, backup.customer_id)

    assert with_vault(stack, restored) == {"name": "Bob"}, "the backup does not work even with the master key"
    other = SecretStr(base64.b64encode(secrets.token_bytes(32)).decode())
    with pytest.raises(OperatorError, match="TILL_MASTER_KEY is not the key"):
        with_vault(stack.model_copy(update={"master_key": other}), restored)


def test_a_key_is_of_no_use_for_another_customer(backup: Backup, stack: Settings) -> None:
    async def borrowed(vault: Vault, pool: Pool) -> Unsealed:
        await backup.restore(pool, "mallory")
        try:
            return await vault.unseal("mallory", backup.sealed)
        finally:
            await erase(pool, "mallory")

    with pytest.raises(OperatorError):
        with_vault(stack, borrowed)


def test_a_customer_who_comes_back_gets_a_new_key_and_the_past_stays_unreadable(
    backup: Backup, stack: Settings
) -> None:
    async def come_back(vault: Vault, _pool: Pool) -> tuple[Unsealed, Unsealed]:
        sealed = await vault.seal(backup.customer_id, {"name": "Rob"})
        return await vault.unseal(backup.customer_id, sealed), await vault.unseal(backup.customer_id, backup.sealed)

    assert with_vault(stack, come_back) == ({"name": "Rob"}, None)


def test_concurrent_seals_for_a_new_customer_use_one_key(shop: Shop, stack: Settings) -> None:
    customer_id = str(uuid7())

    async def seal_all(vault: Vault, _pool: Pool) -> list[Unsealed]:
        sealed = await asyncio.gather(*(vault.seal(customer_id, {"name": str(n)}) for n in range(20)))
        return [await vault.unseal(customer_id, one) for one in sealed]

    assert with_vault(stack, seal_all) == [{"name": str(n)} for n in range(20)]


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_master_key_of_another_size_is_refused(shop: Shop, stack: Settings, length: int) -> None:
    key = SecretStr(base64.b64encode(bytes(length)).decode())
    with pytest.raises(OperatorError, match="not 32 bytes"):
        with_vault(stack.model_copy(update={"master_key": key}), lambda vault, _: vault.seal("bob", {"name": "Bob"}))


def test_erasing_an_unknown_customer_says_so(shop: Shop, stack_environment: dict[str, str]) -> None:
    ran = Till(stack_environment)("erase", str(uuid7()))
    assert ran.code == 1
    assert ran.err.startswith("error: There is no customer")


def test_without_a_database_nothing_is_erased_and_it_says_so(stack_environment: dict[str, str]) -> None:
    ran = Till(stack_environment)("erase", "ann", TILL_DATABASE_URL="postgresql://x@127.0.0.1:1/x")
    assert ran.code == 1
    assert "does not answer" in ran.err
    assert "Traceback" not in ran.err
