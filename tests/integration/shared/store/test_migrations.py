"""The tables that the migrations make are the tables that the code declares."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Column, Connection, MetaData, Table, Text, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from uuid_utils import uuid7

import services.cart.views
import services.catalog.views
import services.order.views
from shared.migrations import VAULT, config, migrate
from shared.settings import Settings
from shared.tables import KERNEL
from shared.vault import KEYS
from tests.integration.kit import drop_schema

pytestmark = pytest.mark.anyio

DECLARED: dict[str, Sequence[MetaData]] = {
    "cart": [KERNEL, services.cart.views.VIEWS],
    "catalog": [KERNEL, services.catalog.views.VIEWS],
    "order": [KERNEL, services.order.views.VIEWS],
}


@pytest.fixture
async def service(stack: Settings) -> AsyncIterator[str]:
    name = f"migrated_{uuid7().hex[-12:]}"
    yield name
    await drop_schema(stack, name)


async def differences(settings: Settings, service: str, declared: Sequence[MetaData]) -> list[Any]:
    """What a migration would have to do to get from the database to the declarations."""
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


@pytest.mark.parametrize("service", DECLARED)
async def test_a_service_has_the_tables_it_declares(stack: Settings, service: str) -> None:
    await migrate(stack.database_url.get_secret_value(), service)
    assert await differences(stack, service, DECLARED[service]) == []


async def test_the_vault_has_the_table_it_declares(stack: Settings, service: str) -> None:
    await migrate(stack.database_url.get_secret_value(), service)
    assert await differences(stack, VAULT, [KEYS]) == []


async def test_keys_of_the_release_before_move_into_the_vault(stack: Settings) -> None:
    """Back to the release before, and on again, in a transaction that nobody else sees."""
    await migrate(stack.database_url.get_secret_value(), "cart")
    keys = {str(uuid7()): b"a", str(uuid7()): b"b"}

    def go_back_and_on(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE cart.customer_keys (LIKE vault.customer_keys INCLUDING ALL)"))
        connection.execute(text("UPDATE cart.alembic_version SET version_num = 'cart_0001' WHERE version_num ~ 'cart'"))
        for customer_id, key in keys.items():
            row = {"customer_id": customer_id, "key": key}
            connection.execute(text("INSERT INTO cart.customer_keys VALUES (:customer_id, :key)"), row)
        command.upgrade(config("cart", connection), "heads")

    engine = engine_of(stack, "cart")
    async with engine.connect() as connection:
        await connection.run_sync(go_back_and_on)
        moved = await connection.execute(text("SELECT customer_id, wrapped_key FROM vault.customer_keys"))
        assert {tuple(row) for row in moved} >= set(keys.items())
        assert await connection.scalar(text("SELECT to_regclass('cart.customer_keys')")) is None
        await connection.rollback()
    await engine.dispose()


async def test_a_difference_would_be_seen(stack: Settings, service: str) -> None:
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
    """A table is in the way of the last one that the kernel makes."""
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
