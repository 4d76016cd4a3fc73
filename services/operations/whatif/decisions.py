"""Decides yesterday's commands again with today's rules, and compares the outcome with what was recorded.

Commands are not stored: each service's `original_commands` finds them from the events they led to, and a command that
cannot be found is reported. A command that was refused or changed nothing left no event, so it cannot be decided again.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from services.cart import original_commands as cart_commands
from services.catalog import original_commands as catalog_commands
from services.common.recorded_decision import RecordedDecision
from services.operations.reading.stores import Stores, open_stores
from services.operations.whatif.recorded_decisions import Window, read_causes, read_decisions
from services.order import original_commands as order_commands
from services.payment import original_commands as payment_commands
from shared.errors import Refused
from shared.messaging.incoming import Incoming
from shared.schemas.contract.event_schemas import Schemas
from shared.service import Service
from shared.settings import Settings

DECISIONS_PER_LOOKUP = 20_000
"""Decisions whose causes are looked up together: event ids have no index, so each lookup walks the whole store."""
DIFFERENCES_KEPT = 1_000


class OriginalCommands(Protocol):
    """The `original_commands` module of a service."""

    def original_command(self, decision: RecordedDecision) -> Any: ...

    def reacted_commands(self, message: Incoming, decision: RecordedDecision) -> list[tuple[str, Any]]: ...


ORIGINAL_COMMANDS: dict[str, OriginalCommands] = {
    "cart": cart_commands,
    "catalog": catalog_commands,
    "order": order_commands,
    "payment": payment_commands,
}


class DecisionDifference(NamedTuple):
    """A decision that today's rules would make otherwise."""

    service: str
    stream: str
    version: int
    time: datetime
    command: str
    recorded: str
    decided: str


@dataclass
class ComparedDecisions:
    """The outcome for one service."""

    service: str
    decisions: int = 0
    same: int = 0
    differences: list[DecisionDifference] = field(default_factory=list)
    """The first of them; `different` counts all."""
    different: int = 0
    underivable: Counter[str] = field(default_factory=Counter)
    """Decisions whose command cannot be found, counted by reason."""

    def add(self, difference: DecisionDifference) -> None:
        self.different += 1
        if len(self.differences) < DIFFERENCES_KEPT:
            self.differences.append(difference)


async def compare_decisions(
    settings: Settings,
    services: Sequence[Service],
    names: Sequence[str],
    window: Window = Window(),  # noqa: B008 - a NamedTuple is immutable
    on_read: Callable[[str, int], None] = lambda _, __: None,
    schemas: Schemas | None = None,
) -> list[ComparedDecisions]:
    """Compares the decisions of the named services; `on_read` is called with a service and a number of events."""
    by_name = {service.name: service for service in services}
    deciders = {service.name: service.decider for service in services}
    async with open_stores(settings.database_url.get_secret_value(), deciders, schemas, settings) as stores:
        return [await _DecisionReplay(by_name[name], stores).run(window, on_read) for name in names]


class _DecisionReplay:
    """Makes the decisions of one service again."""

    def __init__(self, service: Service, stores: Stores) -> None:
        self._service = service
        self._stores = stores
        self._commands = ORIGINAL_COMMANDS[service.name]
        self._result = ComparedDecisions(service.name)

    async def run(self, window: Window, on_read: Callable[[str, int], None]) -> ComparedDecisions:
        reactions: list[RecordedDecision] = []
        async for decision in read_decisions(self._stores[self._service.name], window, on_read):
            self._result.decisions += 1
            command = self._commands.original_command(decision)
            if command is not None:
                self._decide(decision, command)
                continue
            reactions.append(decision)
            if len(reactions) >= DECISIONS_PER_LOOKUP:
                await self._decide_reactions(reactions)
                reactions = []
        await self._decide_reactions(reactions)
        return self._result

    async def _decide_reactions(self, decisions: Sequence[RecordedDecision]) -> None:
        """Decides again what followed from other services' events."""
        causes = await read_causes(self._stores, self._service, [decision.causation_id for decision in decisions])
        for decision in decisions:
            cause = causes.get(decision.causation_id)
            if cause is None:
                kind = type(decision.events[0]).__name__
                self._result.underivable[f"{kind} by {decision.actor}: the event that caused it is in no store"] += 1
                continue
            reacted = self._commands.reacted_commands(cause, decision)
            commands = [command for stream, command in reacted if stream == decision.stream_id]
            if commands:
                self._decide(decision, *commands)
            else:
                self._add_difference(decision, f"(reaction to {cause.type})", "nothing: there is no such reaction")

    def _decide(self, decision: RecordedDecision, *commands: Any) -> None:
        decider, state = self._service.decider, decision.state
        decided: list[Any] = []
        try:
            for command in commands:
                for event in decider.decide(command, state):
                    state = decider.evolve(state, event)
                    decided.append(event)
        except Refused as refused:
            self._add_difference(decision, _names(commands), f"refused: {refused.code}")
            return
        except Exception as error:  # today's rules fail on it: that is their outcome, and is reported as such
            self._add_difference(decision, _names(commands), f"fails: {type(error).__name__}: {error}")
            return
        if _is_same(decision, decided):
            self._result.same += 1
        else:
            self._add_difference(decision, _names(commands), _describe_difference(decided, decision.events))

    def _add_difference(self, decision: RecordedDecision, command: str, decided: str) -> None:
        self._result.add(
            DecisionDifference(
                self._service.name,
                decision.stream_id,
                decision.version,
                decision.time,
                command,
                _names(decision.events),
                decided,
            )
        )


def _is_same(decision: RecordedDecision, decided: Sequence[Any]) -> bool:
    if decision.has_old_schema:
        return [type(event) for event in decided] == [type(event) for event in decision.events]
    return list(decided) == list(decision.events)


def _names(values: Sequence[Any]) -> str:
    return ", ".join(type(value).__name__ for value in values)


def _describe_difference(decided: Sequence[Any], recorded: Sequence[Any]) -> str:
    """Names the decided events; where their types equal the recorded ones, the fields that differ."""
    if [type(event) for event in decided] != [type(event) for event in recorded]:
        return _names(decided) or "nothing"
    fields = [
        f"{type(ours).__name__}.{name} {getattr(ours, name)!r}, not {getattr(theirs, name)!r}"
        for ours, theirs in zip(decided, recorded, strict=True)
        for name in type(ours).__dataclass_fields__
        if getattr(ours, name) != getattr(theirs, name)
    ]
    return "; ".join(fields)
