"""Looks at streams when the moment stored for them has come: the loop under deadlines and errands.

The table `deadlines` has at most one moment per stream, written in the transaction of the event that asks for it. A
deadline puts a moment in the future there; an errand puts the current time. Moments of errands that an older release
stored (1970) have come as well, so they need no migration.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import datetime

import asyncpg

from shared.cancellation import heed_cancellation
from shared.envelope import Context
from shared.store.database import CONNECTION_ERRORS, Connection, Pool, Unavailable, listening

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
LEASE_SECONDS = 10
"""Longer than looking at a stream usually takes. One that takes longer is looked at twice, which is harmless."""
LARGEST_CLAIM = 100
"""Streams that are looked at at the same time."""

# A claim moves the moment into the future instead of deleting it: a process that dies loses its claim, not the moment.
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

# Never at once: when our clock is behind the database's, a moment that has come for the database is ahead of us.
RESCHEDULE = f"""
UPDATE deadlines SET due = greatest($3, now() + interval '{TICK_SECONDS} seconds')
WHERE stream_id = $1 AND due = $2
"""


class DueStreamWorker(ABC):
    """Claims streams that are due and looks at many of them at the same time. A slow one delays no other."""

    def __init__(self, pool: Pool, category: str, actor: str, wake_on: str = "") -> None:
        """`wake_on` is a NOTIFY channel; without it the worker looks only every tick."""
        self._pool = pool
        self._category = category
        self._actor = actor
        self._wake_on = wake_on
        self._wake = asyncio.Event()
        self._claims: set[asyncio.Task[None]] = set()
        self._may_have_more = False

    @abstractmethod
    async def look_at(self, stream_id: str, because: Context) -> datetime | None:
        """Does what is due for the stream. Gives the moment to look again; None: not until an event asks for it."""

    async def run(self) -> None:
        """Runs until cancelled, and waits while the database is unavailable."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    async with self._pool.acquire() as connection, self._listening(connection):
                        await self._claim_forever(connection, tasks)
                except (*CONNECTION_ERRORS, asyncpg.PostgresError) as error:
                    log.warning("due streams cannot be read; trying again", extra={"error": repr(error)})
                    await asyncio.sleep(TICK_SECONDS)

    async def claim(self, connection: Connection, tasks: asyncio.TaskGroup) -> int:
        """Claims as many due streams as there is room for, and starts a task for each."""
        room = LARGEST_CLAIM - len(self._claims)
        claimed = await connection.fetch(CLAIM, self._category + ":", room) if room else []
        self._may_have_more = len(claimed) == room
        for stream_id, lease, *cause in claimed:
            because = Context(self._actor, *cause) if cause[0] else Context(self._actor)
            claim = tasks.create_task(self._look(stream_id, lease, because))
            self._claims.add(claim)
            claim.add_done_callback(self._done)
        return len(claimed)

    def _listening(self, connection: Connection) -> AbstractAsyncContextManager[None]:
        return listening(connection, self._wake_on, self._notified) if self._wake_on else nullcontext()

    def _notified(self, *_: object) -> None:
        self._wake.set()

    async def _claim_forever(self, connection: Connection, tasks: asyncio.TaskGroup) -> None:
        while True:
            heed_cancellation()
            self._wake.clear()
            await self.claim(connection, tasks)
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._wake.wait()

    def _done(self, claim: asyncio.Task[None]) -> None:
        self._claims.discard(claim)
        if self._may_have_more:
            self._wake.set()

    async def _look(self, stream_id: str, lease: datetime, because: Context) -> None:
        try:
            next_due = await self.look_at(stream_id, because)
            # `due = lease` only while this is still our claim: an event may have set another moment meanwhile.
            if next_due is None:
                await self._pool.execute("DELETE FROM deadlines WHERE stream_id = $1 AND due = $2", stream_id, lease)
            else:
                await self._pool.execute(RESCHEDULE, stream_id, lease, next_due)
        # The failure of one stream does not stop the others. It is tried again when its lease is over.
        except (*CONNECTION_ERRORS, Unavailable) as error:
            log.warning(
                "a due stream was not handled; trying again soon", extra={"stream": stream_id, "error": repr(error)}
            )
        except Exception:
            log.exception("a due stream could not be handled", extra={"stream": stream_id})
