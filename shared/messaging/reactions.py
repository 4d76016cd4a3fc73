"""Reactions: events of other services become commands to our own streams, in the transaction that moves the offset."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shared.envelope import Context, millis, now
from shared.handler import CommandHandler
from shared.messaging.consumer import Apply
from shared.messaging.incoming import Incoming
from shared.store.database import Connection


@dataclass(frozen=True)
class Reaction:
    """A consumer whose effects are commands: how a service reacts to events of other services."""

    name: str
    topics: Sequence[str]
    react: Callable[[Incoming, int], Sequence[tuple[str, Any]]]
    """Turns a message and the time (unix milliseconds) into commands, each with the stream it is for.

    It writes nothing, and reads neither a clock nor a server.
    """
    ready: Callable[[], Awaitable[None]] | None = None
    """Waits until all that `react` needs is in memory; awaited before anything is applied."""


def issue_commands(reaction: Reaction, handler: CommandHandler[Any, Any, Any], actor: str) -> Apply:
    """Makes the consumer's `apply`: each message becomes commands, which the handler decides in the transaction."""

    async def apply(connection: Connection, messages: Sequence[Incoming]) -> None:
        if reaction.ready:
            await reaction.ready()
        at = millis(now())
        commands = [
            (stream_id, command, _caused_by(message, actor))
            for message in messages
            for stream_id, command in reaction.react(message, at)
        ]
        await handler.handle_within(connection, commands)

    return apply


def _caused_by(message: Incoming, actor: str) -> Context:
    return Context(actor, message.correlation_id, message.event_id, message.traceparent)
