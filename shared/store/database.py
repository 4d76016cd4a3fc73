"""Connections of a service: a pool whose search_path is the service's own PostgreSQL schema."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import asyncpg

from shared.errors import OperatorError

if TYPE_CHECKING:  # it takes longer to import than all that a command needs to ask a question
    from shared.settings import Settings

# asyncpg's stubs are generic where its classes are not.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

# What is raised when the server is away, as opposed to when a statement is wrong.
AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that is used in the moment in which it breaks
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    OSError,
    TimeoutError,
)


def is_away(error: BaseException) -> bool:
    """asyncpg counts an argument that it cannot send among its interface errors; that is not the server's fault."""
    return isinstance(error, AWAY) and not isinstance(error, ValueError)


async def _as_it_is(_connection: object) -> None:
    """Whoever locks or listens undoes it. To have the server do it would make of every round trip two."""


async def open_pool(settings: "Settings", service: str, size: int | None = None) -> Pool:
    return await pool_at(settings.database_url.get_secret_value(), service, size or settings.database_pool_size)


async def pool_at(url: str, service: str, size: int) -> Pool:
    try:
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            command_timeout=30,
            reset=_as_it_is,
            server_settings={"search_path": service, "application_name": f"till {service}"},
        )
    except (*AWAY, asyncpg.InvalidPasswordError, asyncpg.InvalidCatalogNameError) as error:
        raise OperatorError(
            f"PostgreSQL does not answer: {error}", "Start it with: till up. Or set TILL_DATABASE_URL."
        ) from error


@asynccontextmanager
async def listening(connection: Connection, channel: str, notified: Callable[..., None]) -> AsyncIterator[None]:
    """Be told of every NOTIFY on the channel, until the end of the block or of the connection."""
    await connection.add_listener(channel, notified)
    try:
        yield
    finally:
        if connection.is_closed():
            connection.terminate()  # or asyncpg leaves the listener on it, and warns of it
        else:
            await connection.remove_listener(channel, notified)
