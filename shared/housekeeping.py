"""Lets go of what has served its time: answers to Idempotency-Keys that nobody will send again."""

import asyncio
import logging

from shared.database import AWAY, Pool

log = logging.getLogger(__name__)

EVERY_SECONDS = 3600.0


async def forget_old_answers(pool: Pool, days: float) -> None:
    """Until cancelled. Within that time the same key gives the same answer; after it, it is a new request."""
    while True:
        try:
            await pool.execute("DELETE FROM answers WHERE time < now() - $1 * interval '1 day'", days)
        except AWAY as away:
            log.warning("old answers are kept for now", extra={"error": repr(away)})
        await asyncio.sleep(EVERY_SECONDS)
