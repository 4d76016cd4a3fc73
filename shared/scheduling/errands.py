"""Errands: calls to the outside world that a stream's state wants, made until they are answered.

An event that makes its stream want an errand stores a row in its own transaction, so a process that dies forgets no
call. The call may be made more than once (at-least-once), so it carries an idempotency key. Its result comes back as a
command to the stream.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from shared.decider import Command, State
from shared.envelope import Context, now
from shared.errors import Refused
from shared.handler import CommandHandler
from shared.scheduling.due_streams import DueStreamWorker
from shared.store.database import Pool

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.1, 10.0

Operation = TypeVar("Operation")


class NotAnswered(Exception):
    """The call has no result. It may have had its effect all the same, so it is made again with the same key."""


@dataclass(frozen=True)
class Errands(Generic[State, Operation, Command]):
    """A service's errands, as declared in its `wiring.py`."""

    wanted: Callable[[State], Operation | None]
    """The call that a stream in this state wants to be made, if any. Equal operations are one errand."""
    open: Callable[[], AbstractAsyncContextManager[Callable[[Operation], Awaitable[Command]]]]
    """Opens the client that makes the calls, for as long as the worker runs. A call gives the command that records
    its result, or raises NotAnswered.
    """


class ErrandWorker(DueStreamWorker):
    """Runs errands as soon as they are wanted, and again with growing pauses while they are not answered."""

    def __init__(
        self,
        pool: Pool,
        handler: CommandHandler[Any, Any, Any],
        errands: Errands[Any, Any, Any],
        service: str,
    ) -> None:
        # Every append notifies the channel of the outbox, so that a new errand does not wait for the next tick.
        super().__init__(pool, handler.decider.category, f"service:{service}", wake_on=f"outbox_{service}")
        self._handler = handler
        self._errands = errands
        self._attempts: dict[str, int] = {}

    async def run(self) -> None:
        async with self._errands.open() as self._call:
            await super().run()

    async def look_at(self, stream_id: str, because: Context) -> datetime | None:
        operation = self._errands.wanted((await self._handler.state(stream_id)).state)
        if operation is None:
            self._attempts.pop(stream_id, None)
            return None
        try:
            result = await self._call(operation)
        except NotAnswered:
            return self._later(stream_id)
        with suppress(Refused):
            decided = await self._handler.handle(stream_id, result, because)
            if not decided.events:  # the result changed nothing, so the stream still wants the call
                return self._later(stream_id)
        self._attempts.pop(stream_id, None)
        return None

    def _later(self, stream_id: str) -> datetime:
        """Returns the moment of the next attempt: exponential backoff with jitter.

        Without jitter, calls that failed together would come back together.
        """
        attempts = self._attempts[stream_id] = self._attempts.get(stream_id, 0) + 1
        doublings = min(attempts - 1, 10)  # without a limit, hours of failures would overflow
        wait = min(FIRST_WAIT_SECONDS * 2**doublings, LONGEST_WAIT_SECONDS)
        return now() + timedelta(seconds=wait * random.uniform(0.5, 1))
