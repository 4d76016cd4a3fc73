"""A network cable between a client and a server, which a test can cut and mend."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from infra.settings import Settings


class Wire:
    """A TCP proxy as a network cable: bytes go through until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Breaks every connection and refuses new ones."""
        if self._server:
            self._server.close()
            for end in list(self._ends):
                end.transport.abort()
            await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection(*self._target)
        ends = {writer, away}
        self._ends |= ends
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_copy(reader, away))
                directions.create_task(_copy(there, writer))
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    if not target.is_closing():
        target.close()


@asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """Lays a cable to the server of that URL, and gives the URL that leads through it."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    wire = Wire(parts.hostname, parts.port)
    await wire.mend()
    through = parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{wire.port}"))
    try:
        yield wire, urlunsplit(through)
    finally:
        await wire.cut()


@asynccontextmanager
async def wired_database(settings: Settings) -> AsyncIterator[tuple[Wire, Settings]]:
    async with wire_to(settings.database_url.get_secret_value()) as (wire, url):
        yield wire, settings.model_copy(update={"database_url": SecretStr(url)})


@asynccontextmanager
async def wired_registry(settings: Settings) -> AsyncIterator[tuple[Wire, Settings]]:
    async with wire_to(settings.registry_url) as (wire, url):
        yield wire, settings.model_copy(update={"registry_url": url})
