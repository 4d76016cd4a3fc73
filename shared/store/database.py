"""Connections of a service: a pool whose search_path is the service's own PostgreSQL schema."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import asyncpg

from shared.errors import OperatorError

if TYPE_CHECKING:  # importing it takes longer than everything `till state` needs
    from shared.settings import Settings

# asyncpg's stubs are generic where its classes are not.
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

# Raised when the server cannot be reached, as opposed to when a statement is wrong.
CONNECTION_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that is used at the moment it breaks
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    OSError,
    TimeoutError,
)


class SharedSchema(NamedTuple):
    """A PostgreSQL schema that several services use, and the folder of its migrations."""

    name: str
    migrations: Path


class Unavailable(Exception):
    """The database cannot be reached. What was in flight may or may not be stored.

    A retry with the same Idempotency-Key finds out.
    """

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"PostgreSQL: {cause!r}")


def is_connection_error(error: BaseException) -> bool:
    """Tells a missing server from a wrong argument, which asyncpg counts among its interface errors too."""
    return isinstance(error, CONNECTION_ERRORS) and not isinstance(error, ValueError)


@contextmanager
def raising_unavailable() -> Iterator[None]:
    """Turns the many errors that asyncpg has for a server that cannot be reached into Unavailable."""
    try:
        yield
    except CONNECTION_ERRORS as error:
        if not is_connection_error(error):
            raise
        raise Unavailable(error) from error


async def _keep_session_state(_connection: object) -> None:
    """Skips the RESET on release, which costs a round trip. Code that uses LOCK or LISTEN cleans up itself."""


async def open_pool(settings: "Settings", service: str, size: int | None = None) -> Pool:
    return await pool_at(settings.database_url.get_secret_value(), service, size or settings.database_pool_size)


async def pool_at(url: str, service: str, size: int) -> Pool:
    try:
        return await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=size,
            command_timeout=30,
            reset=_keep_session_state,
            server_settings={"search_path": service, "application_name": f"till {service}"},
        )
    except (*CONNECTION_ERRORS, asyncpg.InvalidPasswordError, asyncpg.InvalidCatalogNameError) as error:
        raise OperatorError(
            f"PostgreSQL does not answer: {error}", "Start it with: till up. Or set TILL_DATABASE_URL."
        ) from error


@asynccontextmanager
async def listening(connection: Connection, channel: str, notified: Callable[..., None]) -> AsyncIterator[None]:
    """Calls `notified` for every NOTIFY on the channel, until the end of the block or of the connection."""
    await connection.add_listener(channel, notified)
    try:
        yield
    finally:
        if connection.is_closed():
            connection.terminate()  # otherwise asyncpg leaves the listener on it and warns about it
        else:
            await connection.remove_listener(channel, notified)
