"""Brings a service's PostgreSQL schema up to date: the kernel's tables, then the service's own."""

from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

KERNEL = Path(str(files("shared.migrations")))


def config(service: str, connection: Connection) -> Config:
    locations = [KERNEL / "versions"]
    own = Path(str(files("services"))) / service / "migrations"
    if own.is_dir():
        locations.append(own)
    settings = Config()
    settings.set_main_option("script_location", str(KERNEL))
    settings.set_main_option("version_locations", "\n".join(map(str, locations)))
    settings.set_main_option("path_separator", "newline")
    settings.attributes.update(connection=connection, schema=service)
    return settings


async def migrate(database_url: str, service: str) -> None:
    engine = create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        connect_args={"server_settings": {"search_path": service}},
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade, service)
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, service: str) -> None:
    # Two processes of a service may start at once: the second waits here and finds nothing to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:lock))"), {"lock": f"migrate {service}"})
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{service}"'))
    command.upgrade(config(service, connection), "heads")
