"""The shape of every aggregate: pure functions that decide and evolve, and what their results look like."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, get_args, get_type_hints

State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")
TakenCommand = TypeVar("TakenCommand", contravariant=True)


# These two are not frozen: that would triple the time it takes to make them, and every command makes both.
@dataclass(slots=True)
class Versioned(Generic[State]):
    """A stream's state after its first `version` events, as it is now or as it was."""

    stream_id: str
    state: State
    version: int


@dataclass(slots=True)
class Decided(Versioned[State], Generic[State, Event]):
    """The result of a command: the new events, and the state and version that they lead to."""

    events: list[Event]


@dataclass(frozen=True, slots=True)
class Announcement:
    """The latest state of something as a document for a compacted topic, written in the events' transaction."""

    topic: str
    key: str
    document: Any


@dataclass(frozen=True)
class Deadlines(Generic[State, Command, Event]):
    """The moments (unix milliseconds) at which a stream is given a command because time has passed."""

    due: Callable[[Event], int | None]
    """The moment that this event sets, if any; stored in the event's transaction."""
    command: Callable[[int], Command]
    """The command for a stream whose moment has come; takes the current time."""
    next: Callable[[State], int | None]
    """The next moment after that command; None if the stream needs no more attention."""


class Rules(Protocol[State, TakenCommand, Event]):
    """A service's `decider.py`: the module itself is passed to `Decider.of`."""

    @property
    def initial(self) -> State: ...
    @property
    def decide(self) -> Callable[[TakenCommand, State], list[Event]]: ...
    @property
    def evolve(self) -> Callable[[State, Event], State]: ...


@dataclass(frozen=True)
class Decider(Generic[State, Command, Event]):
    """The rules of one kind of stream, and the names under which its events are stored and published."""

    category: str
    """First part of every stream id: `cart` in `cart:0190...`."""
    topic: str
    initial: State
    decide: Callable[[Command, State], list[Event]]
    evolve: Callable[[State, Event], State]
    deadlines: Deadlines[State, Command, Event] | None = None
    announce: Callable[[State, int], list[Announcement]] | None = None
    """Documents to publish for this state and version, next to the events that led to it."""

    @classmethod
    def of(
        cls,
        rules: Rules[State, Command, Event],
        category: str,
        topic: str,
        deadlines: Deadlines[State, Command, Event] | None = None,
        announce: Callable[[State, int], list[Announcement]] | None = None,
    ) -> "Decider[State, Command, Event]":
        """Takes `initial`, `decide` and `evolve` from a service's `decider` module."""
        return cls(category, topic, rules.initial, rules.decide, rules.evolve, deadlines, announce)

    def handle(self, command: Command, before: Versioned[State]) -> Decided[State, Event]:
        """Decides on a state and folds the new events into it. Raises Refused when a rule says no."""
        events = self.decide(command, before.state)
        state = before.state
        for event in events:
            state = self.evolve(state, event)
        return Decided(before.stream_id, state, before.version + len(events), events)

    @property
    def events(self) -> tuple[type, ...]:
        """The classes of the union that `evolve` takes."""
        union = list(get_type_hints(self.evolve).values())[1]
        return get_args(union) or (union,)
