"""Another service's fact becomes commands to our own streams, in the transaction that moves the offset."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from shared.consumer import Incoming
from shared.database import Connection
from shared.envelope import Context
from shared.handler import CommandHandler

React = Callable[[Incoming], Sequence[tuple[str, Any]]]
"""Pure: which commands, to which streams, a message leads to."""


class Reactor:
    def __init__(
        self,
        handler: CommandHandler[Any, Any, Any],
        react: React,
        actor: str,
        once: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._handler = handler
        self._react = react
        self._actor = actor
        self._once = once

    async def apply(self, connection: Connection, messages: Sequence[Incoming]) -> None:
        if self._once:
            await self._once()
        await self._handler.handle_within(
            connection,
            [
                (stream_id, command, self._because_of(message))
                for message in messages
                for stream_id, command in self._react(message)
            ],
        )

    def _because_of(self, message: Incoming) -> Context:
        return Context(self._actor, message.correlation_id, message.event_id, message.traceparent)
