"""Deadlines: gives a stream a command when a moment that it set has come, such as "abandon this cart if idle"."""

from datetime import datetime
from typing import Any

from shared.decider import Deadlines
from shared.envelope import Context, from_millis, millis, now
from shared.errors import Refused
from shared.handler import CommandHandler
from shared.scheduling.due_streams import DueStreamWorker
from shared.store.database import Pool


class DeadlineWorker(DueStreamWorker):
    """Gives each stream whose deadline has come its command, and stores the next deadline."""

    def __init__(self, pool: Pool, handler: CommandHandler[Any, Any, Any], deadlines: Deadlines[Any, Any, Any]) -> None:
        super().__init__(pool, handler.decider.category, "system:deadline")
        self._handler = handler
        self._deadlines = deadlines

    async def look_at(self, stream_id: str, because: Context) -> datetime | None:
        """Gives the stream its command. If the process dies before the next deadline is stored, the command is given
        again, and finds nothing left to decide.
        """
        try:
            current = await self._handler.handle(stream_id, self._deadlines.command(millis(now())), because)
            state = current.state
        except Refused:
            state = (await self._handler.state(stream_id)).state
        next_due = self._deadlines.next(state)
        return None if next_due is None else from_millis(next_due)
