"""Brings PostgreSQL schemas up to date: those that a service shares with others, then the service's own.

A service's schema gets the kernel's tables first, then the tables of the service's own migrations folder. Each schema
has an `alembic_version` table of its own.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from shared.store.database import SharedSchema

SCRIPTS = Path(str(files("shared.store.migrations")))
KERNEL_MIGRATIONS = SCRIPTS / "versions"


async def migrate(
    database_url: str, service: str, migrations: Path | None = None, shared_schemas: Sequence[SharedSchema] = ()
) -> None:
    """Upgrades in one transaction. Several processes may call this at once; they take turns."""
    engine = create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://", 1),
        connect_args={"server_settings": {"search_path": service}},
    )
    own = [KERNEL_MIGRATIONS, migrations] if migrations else [KERNEL_MIGRATIONS]
    try:
        async with engine.begin() as connection:
            for shared in shared_schemas:
                await connection.run_sync(upgrade, shared.name, [shared.migrations])
            await connection.run_sync(upgrade, service, own)
    finally:
        await engine.dispose()


def upgrade(connection: Connection, schema: str, folders: Sequence[Path]) -> None:
    # The second of two processes that start at once waits here, and then finds nothing to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:lock))"), {"lock": f"migrate {schema}"})
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("version_locations", "\n".join(map(str, folders)))
    config.set_main_option("path_separator", "newline")
    config.attributes.update(connection=connection, schema=schema)
    command.upgrade(config, "heads")
