"""Migrations create the tables that the code declares, and upgrade existing databases."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, MetaData, Table, Text, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from uuid_utils import uuid7

from infra.settings import Settings
from services.cart.wiring import cart
from services.common.vault import KEYS, VAULT
from services.shop.services import shop_services
from shared.service import Service, migrate_service
from shared.store.migrate import KERNEL_MIGRATIONS, migrate, upgrade
from shared.store.tables import KERNEL
from tests.integration.shared.tallies import drop_schema

pytestmark = pytest.mark.anyio

NEWEST_OF_THE_KERNEL = "kernel_0004"
SERVICES = ("cart", "catalog", "order", "payment")


def service_named(name: str, settings: Settings) -> Service:
    return next(service for service in shop_services(settings) if service.name == name)


def declarations(service: Service) -> list[MetaData]:
    return [KERNEL, *(it.view.declaration.metadata for it in service.projections if it.view)]


@pytest.fixture
async def service(stack: Settings) -> AsyncIterator[str]:
    name = f"migrated_{uuid7().hex[-12:]}"
    yield name
    await drop_schema(stack, name)


async def differences(settings: Settings, service: str, declared: Sequence[MetaData]) -> list[Any]:
    """The steps that a migration would need to get from the database to the declarations."""
    engine = engine_of(settings, service)
    together = MetaData()
    for metadata in declared:
        for table in metadata.tables.values():
            table.to_metadata(together)

    def compare(connection: Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), together))

    try:
        async with engine.connect() as connection:
            return await connection.run_sync(compare)
    finally:
        await engine.dispose()


def engine_of(settings: Settings, service: str) -> AsyncEngine:
    url = settings.database_url.get_secret_value().replace("postgresql://", "postgresql+asyncpg://", 1)
    return create_async_engine(url, connect_args={"server_settings": {"search_path": service}})


@asynccontextmanager
async def connected(settings: Settings, service: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(
        settings.database_url.get_secret_value(), server_settings={"search_path": service}
    )
    try:
        yield connection
    finally:
        await connection.close()


async def test_the_kernel_has_the_tables_it_declares(stack: Settings, service: str) -> None:
    await migrate(stack.database_url.get_secret_value(), service)
    assert await differences(stack, service, [KERNEL]) == []


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_has_the_tables_it_declares(stack: Settings, name: str) -> None:
    service = service_named(name, stack)
    await migrate_service(service, stack)
    assert await differences(stack, name, declarations(service)) == []


async def test_the_vault_has_the_table_it_declares(stack: Settings) -> None:
    await migrate_service(cart(stack), stack)
    assert await differences(stack, VAULT.name, [KEYS]) == []


async def test_a_service_that_shares_no_schema_creates_none(stack: Settings, service: str) -> None:
    await migrate(stack.database_url.get_secret_value(), service, shared_schemas=[])
    async with connected(stack, service) as connection:
        found = await connection.fetchval("SELECT array_agg(version_num::text) FROM alembic_version")
    assert found == [NEWEST_OF_THE_KERNEL]


RELEASED = {
    "cart": {NEWEST_OF_THE_KERNEL, "cart_0002"},
    "catalog": {NEWEST_OF_THE_KERNEL, "catalog_0001"},
    "order": {NEWEST_OF_THE_KERNEL, "order_0001"},
    "payment": {NEWEST_OF_THE_KERNEL},
    "vault": {"vault_0001"},
}
"""The revisions in the `alembic_version` tables of existing databases. An upgrade has to find all of them."""


async def test_the_revisions_of_existing_databases_are_still_known(stack: Settings) -> None:
    for service in shop_services(stack):
        await migrate_service(service, stack)
    for schema, revisions in RELEASED.items():
        async with connected(stack, schema) as connection:
            found = await connection.fetch("SELECT version_num FROM alembic_version")
        assert {row[0] for row in found} == revisions, schema


async def test_customer_keys_of_an_older_release_move_into_the_vault(stack: Settings) -> None:
    """Goes back to the older release and upgrades again, in a transaction that is rolled back."""
    service = cart(stack)
    assert service.migrations
    folders = [KERNEL_MIGRATIONS, service.migrations]
    await migrate_service(service, stack)
    keys = {str(uuid7()): b"a", str(uuid7()): b"b"}

    def go_back_and_on(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE cart.customer_keys (LIKE vault.customer_keys INCLUDING ALL)"))
        connection.execute(text("UPDATE cart.alembic_version SET version_num = 'cart_0001' WHERE version_num ~ 'cart'"))
        for customer_id, key in keys.items():
            row = {"customer_id": customer_id, "key": key}
            connection.execute(text("INSERT INTO cart.customer_keys VALUES (:customer_id, :key)"), row)
        upgrade(connection, "cart", folders)

    engine = engine_of(stack, "cart")
    async with engine.connect() as connection:
        await connection.run_sync(go_back_and_on)
        moved = await connection.execute(text("SELECT customer_id, wrapped_key FROM vault.customer_keys"))
        assert {tuple(row) for row in moved} >= set(keys.items())
        assert await connection.scalar(text("SELECT to_regclass('cart.customer_keys')")) is None
        await connection.rollback()
    await engine.dispose()


async def test_a_difference_between_migrations_and_declarations_is_found(stack: Settings, service: str) -> None:
    await migrate(stack.database_url.get_secret_value(), service)
    more = MetaData()
    Table("receipts", more, Column("id", Text, primary_key=True))
    assert [step[0] for step in await differences(stack, service, [KERNEL, more])] == ["add_table"]
    async with connected(stack, service) as connection:
        await connection.execute("ALTER TABLE events ALTER COLUMN version TYPE bigint; DROP INDEX deadlines_due")
    found = await differences(stack, service, [KERNEL])
    assert sorted(step[0][0] if isinstance(step, list) else step[0] for step in found) == ["add_index", "modify_type"]


async def test_migrating_again_changes_nothing_and_keeps_the_data(stack: Settings, service: str) -> None:
    url = stack.database_url.get_secret_value()
    await migrate(url, service)
    async with connected(stack, service) as connection:
        await connection.execute("INSERT INTO snapshots VALUES ('tally:a', 1, 'fold', 'state')")
        await migrate(url, service)
        assert await connection.fetchval("SELECT count(*) FROM snapshots") == 1
    assert await differences(stack, service, [KERNEL]) == []


async def test_processes_that_start_at_once_migrate_one_after_the_other(stack: Settings, service: str) -> None:
    url = stack.database_url.get_secret_value()
    await asyncio.gather(*(migrate(url, service) for _ in range(6)))
    assert await differences(stack, service, [KERNEL]) == []
    async with connected(stack, service) as connection:
        assert await connection.fetchval("SELECT count(*) FROM alembic_version") == 1


async def test_a_migration_that_fails_leaves_nothing_behind(stack: Settings, service: str) -> None:
    """A table with the name of one of the kernel's tables exists already."""
    async with connected(stack, "public") as connection:
        await connection.execute(f'CREATE SCHEMA "{service}"; CREATE TABLE "{service}".schemas (id int)')
        with pytest.raises(Exception, match="already exists"):
            await migrate(stack.database_url.get_secret_value(), service)
        tables = await connection.fetch(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = $1", service
        )
        assert [row[0] for row in tables] == ["schemas"]


async def test_an_event_of_one_service_is_no_event_of_another(stack: Settings, service: str) -> None:
    other = f"{service}_other"
    await migrate(stack.database_url.get_secret_value(), service)
    await migrate(stack.database_url.get_secret_value(), other)
    try:
        async with connected(stack, service) as here, connected(stack, other) as there:
            await here.execute("INSERT INTO deadlines VALUES ('cart:a', now())")
            assert await there.fetchval("SELECT count(*) FROM deadlines") == 0
    finally:
        await drop_schema(stack, other)
