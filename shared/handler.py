"""Runs commands: load a stream, fold it, decide, record, append, and start again if another writer was faster."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

from shared.decider import Command, Decided, Decider, Event, State, Versioned
from shared.envelope import Context
from shared.errors import Contended, KeyReused, Refused, StaleVersion
from shared.store.answers import Answered, KeyedRequest, find_answer
from shared.store.batching import Batcher
from shared.store.database import Connection
from shared.store.event_store import Conflict, EventStore, Write, execute
from shared.store.recording import Recorder
from shared.store.states import States

ATTEMPTS = 20


class PendingCommand(NamedTuple):
    """A command that waits for its turn, with what its caller expects of it."""

    command: Any
    context: Context
    expected: int | None = None
    request: KeyedRequest | None = None


Outcome = Decided[Any, Any] | Answered | Exception


class CommandHandler(Generic[State, Command, Event]):
    """Handles the commands of one kind of stream, one batch per stream at a time."""

    def __init__(
        self,
        decider: Decider[State, Command, Event],
        store: EventStore,
        states: States[State, Command, Event],
        recorder: Recorder,
    ) -> None:
        self.decider = decider
        self._store = store
        self._states = states
        self._recorder = recorder
        self._batcher: Batcher[PendingCommand, Any] = Batcher(self._handle_batch)

    async def _handle_batch(self, stream_id: str, commands: Sequence[PendingCommand]) -> list[Outcome]:
        """Takes the waiting commands of one stream from loading to commit. They share one append."""
        for attempt in range(ATTEMPTS):
            # 1. Load the stream and fold its events into a state. The first attempt trusts the cached state.
            cached = self._states.cached(stream_id) if attempt == 0 else None
            current = before = cached or await self._states.load(stream_id)
            write, all_append = Write(), True
            outcomes: list[Outcome] = []
            for pending in commands:
                # 2. Decide on the state that the commands before this one have led to.
                outcome = await self._decide(pending, current, write)
                # 3. Record what the decision changes: events, outbox messages, deadlines, the answer.
                if isinstance(outcome, Decided) and outcome.events:
                    self._recorder.record(write, current, outcome, pending.context)
                    current = outcome
                else:
                    all_append = False
                if pending.request and isinstance(outcome, Decided | Refused):
                    outcome = pending.request.answer(pending.context.actor, outcome)
                    write.answers.append(outcome.answer)
                outcomes.append(outcome)
            # An append proves that the cached state was up to date. A refusal or "nothing to do" proves nothing:
            # it is decided again on what is stored.
            if cached and not all_append:
                continue
            try:
                # 4. Append in one commit. unique(stream_id, version) makes it fail if another process was faster.
                if write:
                    await self._store.append(write)
            except Conflict:
                # 5. Wait a little, load what the other process appended, and decide again.
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
                continue
            await self._states.keep(before, current)
            return outcomes
        raise Contended(f"{stream_id} was written by others {ATTEMPTS} times in a row.")

    async def _decide(self, pending: PendingCommand, current: Versioned[State], write: Write) -> Outcome:
        try:
            if pending.request and (
                answered := await find_answer(self._store.pool, pending.context.actor, pending.request, write.answers)
            ):
                return answered
            if pending.expected is not None and pending.expected != current.version:
                return StaleVersion(current.version)
            return self.decider.handle(pending.command, current)
        except (Refused, KeyReused) as no:
            return no

    async def handle(
        self, stream_id: str, command: Command, context: Context, *, expected: int | None = None
    ) -> Decided[State, Event]:
        """Decides, appends and returns the result.

        Raises Refused, StaleVersion if `expected` is not the version, or Contended if others were always faster.
        """
        decided: Decided[State, Event] = await self._batcher.submit(
            stream_id, PendingCommand(command, context, expected)
        )
        return decided

    async def handle_once(
        self,
        stream_id: str,
        command: Command,
        context: Context,
        request: KeyedRequest,
        *,
        expected: int | None = None,
    ) -> Answered:
        """Handles a command under an Idempotency-Key: its answer, a refusal too, is stored in the same commit."""
        answered: Answered = await self._batcher.submit(stream_id, PendingCommand(command, context, expected, request))
        return answered

    async def handle_within(self, connection: Connection, commands: Sequence[tuple[str, Command, Context]]) -> None:
        """Handles commands one after the other inside the caller's transaction, which may call this once.

        A refusal is raised: a reaction to another service's event has nobody to refuse to. So is Conflict, and the
        caller starts its transaction again.
        """
        states = await self._states.load_all({stream_id for stream_id, _, _ in commands}, connection)
        write = Write()
        for stream_id, command, context in commands:
            before = states[stream_id]
            decided = self.decider.handle(command, before)
            if decided.events:
                self._recorder.record(write, before, decided, context)
                states[stream_id] = decided
        if write:
            await execute(connection, [write])

    async def state(self, stream_id: str) -> Versioned[State]:
        """Returns the state as of now, with the events that other processes appended."""
        return await self._states.load(stream_id)

    async def finish(self) -> None:
        """Waits until every accepted command has its outcome."""
        await self._batcher.finish()
