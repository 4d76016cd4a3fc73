"""Brings a service's PostgreSQL schema up to date, after the vault's: the kernel's tables, then the service's own."""

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

KERNEL = Path(str(files("shared.migrations")))
VAULT = "vault"
"""The schema of the customers' keys. It belongs to no service, and is there before any."""


def config(schema: str, connection: Connection) -> Config:
    settings = Config()
    settings.set_main_option("script_location", str(KERNEL))
    settings.set_main_option("version_locations", "\n".join(map(str, _locations(schema))))
    settings.set_main_option("path_separator", "newline")
    settings.attributes.update(connection=connection, schema=schema)
    return settings


def _locations(schema: str) -> list[Path]:
    if schema == VAULT:
        return [KERNEL / VAULT]
    own = Path(str(files("services"))) / schema / "migrations"
    return [KERNEL / "versions", own] if own.is_dir() else [KERNEL / "versions"]


async def migrate(database_url: str, service: str) -> None:
    engine = create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        connect_args={"server_settings": {"search_path": service}},
    )
    try:
        async with engine.begin() as connection:
            for schema in (VAULT, service):
                await connection.run_sync(_upgrade, schema)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, schema: str) -> None:
    # Two processes may start at once: the second waits here, and of the same service finds nothing to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:lock))"), {"lock": f"migrate {schema}"})
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
    command.upgrade(config(schema, connection), "heads")
