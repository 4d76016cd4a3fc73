"""Looks at streams again when the moment they set has come."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

from shared.cancellation import heed_cancellation
from shared.database import AWAY, Pool, listening
from shared.envelope import Context, from_millis, millis, now
from shared.errors import Refused
from shared.handler import CommandHandler, Handled
from shared.store import Unavailable

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
LEASE_SECONDS = 30

# A claim moves the moment on instead of deleting it: who dies with a claim loses it, not the deadline.
CLAIM = f"""
UPDATE deadlines SET due = now() + interval '{LEASE_SECONDS} seconds'
WHERE stream_id IN (
    SELECT stream_id FROM deadlines WHERE due <= now() AND starts_with(stream_id, $1)
    ORDER BY due LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING stream_id, due
"""


# Not at once: where our clock is behind the database's, a moment that it calls due is yet to come for us.
NEXT = f"""
UPDATE deadlines SET due = greatest($3, now() + interval '{TICK_SECONDS} seconds')
WHERE stream_id = $1 AND due = $2
"""

LookAt = Callable[[str], Awaitable[int | None]]
"""Does what is to be done about a stream; when to look again (unix ms), or None: never."""


class DeadlineWorker:
    def __init__(
        self, pool: Pool, handler: CommandHandler[Any, Any, Any], look_at: LookAt | None = None, wake_on: str = ""
    ) -> None:
        self._pool = pool
        self._handler = handler
        self._look_at = look_at or self._ask
        self._wake_on = wake_on
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Every tick, and (with `wake_on`, a channel of the database) as soon as there may be something to do."""
        while True:
            try:
                async with self._listening():
                    while True:
                        heed_cancellation()
                        self._wake.clear()
                        while await self.fire():
                            pass
                        with suppress(TimeoutError):
                            async with asyncio.timeout(TICK_SECONDS):
                                await self._wake.wait()
            except (*AWAY, Unavailable) as error:
                log.warning("deadlines interrupted, they are tried again", extra={"error": repr(error)})
                await asyncio.sleep(TICK_SECONDS)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        if not self._wake_on:
            yield
            return
        async with self._pool.acquire() as connection, listening(connection, self._wake_on, self._notified):
            yield

    def _notified(self, *_: object) -> None:
        self._wake.set()

    async def fire(self) -> int:
        """Handle what is due. Fired twice (we died in between), the second finds nothing left to decide."""
        claimed = await self._pool.fetch(CLAIM, self._handler.decider.category + ":")
        await asyncio.gather(*(self._meet(stream_id, lease) for stream_id, lease in claimed))
        return len(claimed)

    async def _meet(self, stream_id: str, lease: datetime) -> None:
        try:
            next_due = await self._look_at(stream_id)
        except (*AWAY, Unavailable):
            raise
        except Exception:  # the others need not wait for it; when its lease is over, it is tried again
            log.exception("a deadline could not be met", extra={"stream": stream_id})
            return
        # Only if it is still our claim: the stream may have set another moment meanwhile.
        if next_due is None:
            await self._pool.execute("DELETE FROM deadlines WHERE stream_id = $1 AND due = $2", stream_id, lease)
        else:
            await self._pool.execute(NEXT, stream_id, lease, from_millis(next_due))

    async def _ask(self, stream_id: str) -> int | None:
        deadlines = self._handler.decider.deadlines
        if deadlines is None:
            return None
        try:
            handled = await self._handler.handle(
                stream_id, deadlines.command(millis(now())), Context(actor="system:deadline")
            )
        except Refused:
            handled = await self._handler.state(stream_id)
        return deadlines.next(handled.state) if isinstance(handled, Handled) else None
