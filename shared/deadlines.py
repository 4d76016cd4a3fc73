"""Looks at streams again when the moment they set has come."""

import asyncio
import logging
from typing import Any

from shared.database import AWAY, Pool
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


class DeadlineWorker:
    def __init__(self, pool: Pool, handler: CommandHandler[Any, Any, Any]) -> None:
        self._pool = pool
        self._handler = handler

    async def run(self) -> None:
        while True:
            try:
                while await self.fire():
                    pass
            except (*AWAY, Unavailable) as error:
                log.warning("deadlines interrupted, they are tried again", extra={"error": repr(error)})
            await asyncio.sleep(TICK_SECONDS)

    async def fire(self) -> int:
        """Handle what is due. Fired twice (we died in between), the second finds nothing left to decide."""
        claimed = await self._pool.fetch(CLAIM, self._handler.decider.category + ":")
        for stream_id, lease in claimed:
            try:
                next_due = await self._look_at(stream_id)
            except (*AWAY, Unavailable):
                raise
            except Exception:  # the others need not wait for it; when its lease is over, it is tried again
                log.exception("a deadline could not be met", extra={"stream": stream_id})
                continue
            if next_due is None:
                await self._pool.execute("DELETE FROM deadlines WHERE stream_id = $1 AND due = $2", stream_id, lease)
            else:
                await self._pool.execute(NEXT, stream_id, lease, from_millis(next_due))
        return len(claimed)

    async def _look_at(self, stream_id: str) -> int | None:
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
