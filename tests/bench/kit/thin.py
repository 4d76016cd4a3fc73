"""An HTTP client so thin that it does not distort a measurement: one connection, one request at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from shared.settings import HOST


class Thin:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.token = ""

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = orjson.dumps(body) if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: shop\r\nContent-Length: {len(content)}\r\n"
        head += f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        self._writer.write(f"{head}\r\n".encode() + content)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(answer[9:12]), orjson.loads(await self._reader.readexactly(length))


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Thin]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield Thin(reader, writer)
    finally:
        writer.close()
