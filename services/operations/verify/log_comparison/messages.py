"""The common form of messages: as a topic has them, and as a store says they should be."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

Body = tuple[int, Any]
"""A message without its key: its time in milliseconds, and value and headers in the form of the reader."""
Message = tuple[int, bytes | None, Body]
"""A message of the topic: offset, key, body. A plain tuple: there are millions."""
StoredMessage = tuple[bytes, int, Body]
"""A stored event as the message it should be: stream, position in the store, body."""
Fetched = dict[int, tuple[list[Message], int]]
"""Some messages and the offset that comes next, by partition."""
Offsets = Mapping[int, int]
"""An offset by partition."""


class Contents(NamedTuple):
    """The parts of a body, for violations to name."""

    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]]


class LogReader(Protocol):
    """Reads a store and its topic such that equal messages have equal bodies."""

    def read_store(self, last: int, since: datetime) -> AsyncIterator[list[StoredMessage]]:
        """Yields the events up to position `last` in chunks, in order of positions, from the moment `since` on."""
        ...

    async def look_up(
        self, streams: Sequence[str], versions: Sequence[int]
    ) -> dict[tuple[bytes, int], tuple[int, Body]]:
        """Returns position and body of stored events, by stream and version."""
        ...

    async def fetch(self, wanted: Offsets) -> Fetched:
        """Reads some messages of each partition from the given offset on."""
        ...

    def contents(self, body: Body) -> Contents: ...
