"""Read your own writes: an answer names its Event-Position, and a later request can wait for it by Min-Position.

A position is a stream and a version (ADR 7). Clients treat it as opaque.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from shared.handler import CommandHandler
from shared.http.problems import Problem

FORM = re.compile(r"([a-z]+:[\x21-\x7e]{1,200})@(\d{1,9})")
POLL_SECONDS = 0.005
GRACE_SECONDS, GRACE_POLL_SECONDS = 2.0, 0.05

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a stream, such as `cart:0190…@7`. A view has reached it when it shows that version or a later one."""

    stream_id: str
    version: int

    def __str__(self) -> str:
        return f"{self.stream_id}@{self.version}"

    @property
    def category(self) -> str:
        return self.stream_id.partition(":")[0]

    @property
    def key(self) -> str:
        return self.stream_id.partition(":")[2]


def parse_position(header: str | None) -> Position | None:
    if header is None:
        return None
    if not (position := FORM.fullmatch(header)):
        raise Problem(400, "min-position-invalid", "Min-Position takes an Event-Position as it was answered.")
    return Position(position[1], int(position[2]))


async def is_stored(handler: CommandHandler[Any, Any, Any], position: Position) -> bool:
    """Tells whether the stream itself has reached the position, for reads that fold the stream."""
    return (await handler.state(position.stream_id)).version >= position.version


Views = Mapping[str, Callable[[Position], Awaitable[bool]]]
"""Functions that tell whether a position is visible yet, by stream id or category."""


@dataclass(slots=True)
class Read:
    """A request together with the position that it waits for, if any."""

    request: Request
    min_position: Position | None

    async def wait_for(self, views: Views) -> None:
        """Waits until Min-Position is visible in one of the views. Without that header it returns at once."""
        if not (position := self.min_position):
            return
        reached = views.get(position.stream_id) or views.get(position.category)
        if reached is None:
            raise _elsewhere(position)
        deadline = time.monotonic() + self._timeout()
        while not await reached(position):
            if time.monotonic() > deadline:
                raise self._not_reached()
            await asyncio.sleep(POLL_SECONDS)

    async def find(self, look: Callable[[], Awaitable[Found | None]], *categories: str) -> Found | None:
        """Looks until something is found or the time is up.

        What another service creates (the order of a checkout) exists a moment after its id was given out, so a request
        in between waits instead of getting 404. What belongs to someone else is not found either, and takes as long.
        """
        if self.min_position and self.min_position.category not in categories:
            raise _elsewhere(self.min_position)
        timeout = self._timeout() if self.min_position else min(self._timeout(), GRACE_SECONDS)
        deadline = time.monotonic() + timeout
        while (found := await look()) is None:
            if time.monotonic() > deadline:
                if self.min_position:
                    raise self._not_reached()
                return None
            await asyncio.sleep(GRACE_POLL_SECONDS)
        return found

    def _timeout(self) -> float:
        return float(self.request.app.state.settings.min_position_timeout)

    def _not_reached(self) -> Problem:
        return Problem(504, "position-not-reached", f"The view has not reached {self.min_position} in time.")


def _elsewhere(position: Position) -> Problem:
    return Problem(400, "min-position-elsewhere", f"Nothing here ever shows {position.stream_id}.")
