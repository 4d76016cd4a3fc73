"""The shape of every aggregate: pure functions, and the names under which their events travel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args, get_type_hints

State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class Announcement:
    """A document for a topic beside the event log (the latest of a product), written in the events' transaction."""

    topic: str
    key: str
    document: Any


@dataclass(frozen=True)
class Deadlines(Generic[State, Command, Event]):
    """When a stream wants to be looked at again. Moments are unix milliseconds."""

    due: Callable[[Event], int | None]
    """The moment that this event sets, if any; stored in the event's transaction."""
    command: Callable[[int], Command]
    """What to ask of the stream when the moment has come."""
    next: Callable[[State], int | None]
    """When to look again afterwards; None: never."""


@dataclass(frozen=True)
class Decider(Generic[State, Command, Event]):
    category: str
    """First part of every stream id: `cart` in `cart:0190...`."""
    topic: str
    initial: State
    decide: Callable[[Command, State], list[Event]]
    evolve: Callable[[State, Event], State]
    deadlines: Deadlines[State, Command, Event] | None = None
    announce: Callable[[State, int], list[Announcement]] | None = None
    """What to publish beside the events that led to this state and version."""

    def stream_id(self, key: str) -> str:
        return f"{self.category}:{key}"

    @property
    def events(self) -> tuple[type, ...]:
        """The classes of the union that `evolve` takes."""
        union = list(get_type_hints(self.evolve).values())[1]
        return get_args(union) or (union,)
