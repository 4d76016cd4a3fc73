"""The form of a decider test: given these events, when this command, then those events or this refusal.

A decider is a module with `initial`, `decide` and `evolve`; no fixture and no fake is needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Generic, Protocol, TypeVar

import pytest

from shared.errors import Refused

Command = TypeVar("Command")
State = TypeVar("State")
Event = TypeVar("Event")
Asked = TypeVar("Asked", contravariant=True)


class Decider(Protocol[Asked, State, Event]):
    @property
    def initial(self) -> State: ...
    def decide(self, command: Asked, state: State, /) -> list[Event]: ...
    def evolve(self, state: State, event: Event, /) -> State: ...


@dataclass(frozen=True)
class Outcome(Generic[Event]):
    decide: Callable[[], list[Event]]

    def then(self, *events: Event) -> None:
        assert self.decide() == list(events)

    def nothing(self) -> None:
        self.then()

    def refused(self, code: str, *phrases: str) -> None:
        with pytest.raises(Refused) as refusal:
            self.decide()
        assert refusal.value.code == code
        assert all(phrase in refusal.value.message for phrase in phrases), refusal.value.message


@dataclass(frozen=True)
class Given(Generic[Command, State, Event]):
    decider: Decider[Command, State, Event]
    state: State

    def when(self, command: Command) -> Outcome[Event]:
        return Outcome(lambda: self.decider.decide(command, self.state))


@dataclass(frozen=True)
class Scenario(Generic[Command, State, Event]):
    decider: Decider[Command, State, Event]

    def given(self, *events: Event) -> Given[Command, State, Event]:
        return Given(self.decider, reduce(self.decider.evolve, events, self.decider.initial))
