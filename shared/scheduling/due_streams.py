"""Looks at streams again when the moment they set has come."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import datetime
from typing import Any

import asyncpg

from shared.cancellation import heed_cancellation
from shared.database import AWAY, Connection, Pool, listening
from shared.envelope import Context, from_millis, millis, now
from shared.errors import Refused
from shared.handler import CommandHandler, Handled
from shared.store import Unavailable

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
LEASE_SECONDS = 10
"""Longer than what is done about a stream takes. Were it done twice, there would be one effect all the same."""
AT_ONCE = 100

# A claim moves the moment on instead of deleting it: who dies with a claim loses it, not the deadline.
CLAIM = f"""
WITH claimed AS (
    UPDATE deadlines SET due = now() + interval '{LEASE_SECONDS} seconds'
    WHERE stream_id IN (
        SELECT stream_id FROM deadlines WHERE due <= now() AND starts_with(stream_id, $1)
        ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING stream_id, due, version)
SELECT stream_id, due, correlation_id, event_id::text, traceparent
FROM claimed LEFT JOIN events USING (stream_id, version)
"""

# Not at once: where our clock is behind the database's, a moment that it calls due is yet to come for us.
NEXT = f"""
UPDATE deadlines SET due = greatest($3, now() + interval '{TICK_SECONDS} seconds')
WHERE stream_id = $1 AND due = $2
"""

LookAt = Callable[[str, Context], Awaitable[int | None]]
"""Does what is to be done about a stream, because of the event that set its moment; when to look again (unix ms), or
None: never.
"""


class DeadlineWorker:
    """Meets many at once, and goes on claiming while some of them take long."""

    def __init__(
        self, pool: Pool, handler: CommandHandler[Any, Any, Any], look_at: LookAt | None = None, wake_on: str = ""
    ) -> None:
        self._pool = pool
        self._handler = handler
        self._look_at = look_at or self._ask
        self._wake_on = wake_on
        self._wake = asyncio.Event()
        self._claims: set[asyncio.Task[None]] = set()
        self._more = False
        """More may be due than there was room for."""

    async def run(self) -> None:
        """Every tick, and (with `wake_on`, a channel of the database) as soon as there may be something to do."""
        async with asyncio.TaskGroup() as meetings:
            while True:
                try:
                    async with self._pool.acquire() as connection, self._listening(connection):
                        await self._claim_for_ever(connection, meetings)
                except (*AWAY, asyncpg.PostgresError) as error:
                    log.warning("deadlines interrupted, they are tried again", extra={"error": repr(error)})
                    await asyncio.sleep(TICK_SECONDS)

    async def fire(self) -> int:
        """Meet what is due now. Fired twice (we died in between), the second finds nothing left to decide."""
        async with asyncio.TaskGroup() as meetings, self._pool.acquire() as connection:
            return await self._claim(connection, meetings)

    def _listening(self, connection: Connection) -> AbstractAsyncContextManager[None]:
        return listening(connection, self._wake_on, self._notified) if self._wake_on else nullcontext()

    def _notified(self, *_: object) -> None:
        self._wake.set()

    async def _claim_for_ever(self, connection: Connection, meetings: asyncio.TaskGroup) -> None:
        while True:
            heed_cancellation()
            self._wake.clear()
            await self._claim(connection, meetings)
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()

    async def _claim(self, connection: Connection, meetings: asyncio.TaskGroup) -> int:
        room = AT_ONCE - len(self._claims)
        claimed = await connection.fetch(CLAIM, self._handler.decider.category + ":", room) if room else []
        self._more = len(claimed) == room
        for stream_id, lease, *cause in claimed:
            because = Context("system:deadline", *cause) if cause[0] else Context("system:deadline")
            claim = meetings.create_task(self._meet(stream_id, lease, because))
            self._claims.add(claim)
            claim.add_done_callback(self._done)
        return len(claimed)

    def _done(self, claim: asyncio.Task[None]) -> None:
        self._claims.discard(claim)
        if self._more:
            self._wake.set()

    async def _meet(self, stream_id: str, lease: datetime, because: Context) -> None:
        try:
            next_due = await self._look_at(stream_id, because)
            # Only if it is still our claim: the stream may have set another moment meanwhile.
            if next_due is None:
                await self._pool.execute("DELETE FROM deadlines WHERE stream_id = $1 AND due = $2", stream_id, lease)
            else:
                await self._pool.execute(NEXT, stream_id, lease, from_millis(next_due))
        # The others need not wait for it. When its lease is over, it is tried again.
        except (*AWAY, Unavailable) as error:
            log.warning("a deadline was not met, for now", extra={"stream": stream_id, "error": repr(error)})
        except Exception:
            log.exception("a deadline could not be met", extra={"stream": stream_id})

    async def _ask(self, stream_id: str, because: Context) -> int | None:
        deadlines = self._handler.decider.deadlines
        if deadlines is None:
            return None
        try:
            handled = await self._handler.handle(stream_id, deadlines.command(millis(now())), because)
        except Refused:
            handled = await self._handler.state(stream_id)
        return deadlines.next(handled.state) if isinstance(handled, Handled) else None
