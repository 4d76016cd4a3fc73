"""Runs commands: load, fold, decide, append. One writer per stream at a time, and a bounded number of tries."""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import asyncpg
from uuid_utils import uuid7

from shared.codec import Codec, UnknownSchema
from shared.database import AWAY, Connection, is_away
from shared.decider import Command, Decider, Event, State
from shared.envelope import Context, Message, Recorded, cloud_event_headers, from_millis, now, pack_headers
from shared.errors import Refused
from shared.snapshots import Snapshots
from shared.store import Conflict, EventStore, StoredAnswer, Unavailable, Write, execute

TRIES = 20
CACHED_STREAMS = 20_000
CHUNK = 5_000


class StaleVersion(Exception):
    """The caller named the version it had seen (If-Match), and the stream has moved on."""

    def __init__(self, version: int) -> None:
        super().__init__(f"The current version is {version}.")
        self.version = version


class KeyReused(Exception):
    """This Idempotency-Key was used before, with another request."""


class Contended(Exception):
    """The stream was written by others each time we tried; nothing was written."""


@dataclass(frozen=True, slots=True)
class Handled(Generic[State, Event]):
    stream_id: str
    state: State
    version: int
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request with an Idempotency-Key: its answer is stored in the transaction of its events."""

    key: str
    digest: bytes
    answer: Callable[[Handled[Any, Any] | Refused], tuple[int, bytes, bytes]]
    """Status, packed headers and body of what was done or refused; called before the commit."""


@dataclass(slots=True)
class Job:
    command: Any
    context: Context
    expected: int | None
    request: Request | None
    done: asyncio.Future[Any]
    outcome: Handled[Any, Any] | StoredAnswer | Exception | None = None


class CommandHandler(Generic[State, Command, Event]):
    def __init__(
        self,
        decider: Decider[State, Command, Event],
        store: EventStore,
        codec: Codec,
        snapshots: Snapshots,
        source: str,
        decode_new: Callable[[bytes], Awaitable[Any]] | None = None,
    ) -> None:
        """`decode_new` reads what the codec has no schema for yet: of a newer release that runs beside this one,
        or of an older, where the database was refilled.
        """
        self.decider = decider
        self._store = store
        self._codec = codec
        self._snapshots = snapshots
        self._source = source
        self._decode_new = decode_new
        self._hot: OrderedDict[str, tuple[State, int]] = OrderedDict()
        self._waiting: dict[str, list[Job]] = {}
        self._drains: set[asyncio.Task[None]] = set()

    async def handle(
        self,
        stream_id: str,
        command: Command,
        context: Context,
        *,
        expected: int | None = None,
        request: Request | None = None,
    ) -> Handled[State, Event] | StoredAnswer:
        """What the command did. A StoredAnswer instead, when this request had been answered before."""
        job = Job(command, context, expected, request, asyncio.get_running_loop().create_future())
        if waiting := self._waiting.get(stream_id):
            waiting.append(job)
        else:
            self._waiting[stream_id] = [job]
            # A task of its own: a caller who goes away takes neither its command nor its neighbours' down.
            drain = asyncio.create_task(self._drain(stream_id))
            self._drains.add(drain)
            drain.add_done_callback(self._drains.discard)
        outcome: Handled[State, Event] | StoredAnswer = await job.done
        return outcome

    async def state(self, stream_id: str) -> Handled[State, Event]:
        """The state as of now, events of other processes included."""
        try:
            state, version = await self._load(stream_id)
        except AWAY as away:
            raise _told(away) from away
        return Handled(stream_id, state, version)

    async def handle_within(self, connection: Connection, asked: Sequence[tuple[str, Command, Context]]) -> None:
        """Decide one after the other on what is stored, and append inside the caller's transaction.

        A refusal is raised: who reacts to a fact has no one to say no to.
        """
        states = await self._load_all({stream_id for stream_id, _, _ in asked}, connection)
        write = Write()
        for stream_id, command, context in asked:
            state, version = states[stream_id]
            events = self.decider.decide(command, state)
            for event in events:
                state = self.decider.evolve(state, event)
            states[stream_id] = state, version + len(events)
            if events:
                self._record(write, Handled(stream_id, state, version + len(events), events), context, version)
        if not write:
            return
        try:
            await execute(connection, [write])
        except asyncpg.UniqueViolationError as lost:
            raise Conflict(lost.constraint_name) from lost

    async def settled(self) -> None:
        """Wait until every accepted command has been answered."""
        while self._drains:
            await asyncio.wait(self._drains)

    async def _drain(self, stream_id: str) -> None:
        """Commands that arrive while one is being committed are decided together and share the next commit."""
        waiting = self._waiting[stream_id]
        while waiting:
            jobs = waiting[:]
            try:
                await self._settle(stream_id, jobs)
            except Exception as error:  # it belongs to those who wait
                self._hot.pop(stream_id, None)
                for job in jobs:
                    job.outcome = _told(error)
            for job in jobs:
                if job.done.cancelled():
                    continue
                if isinstance(job.outcome, Exception):
                    job.done.set_exception(job.outcome)
                else:
                    job.done.set_result(job.outcome)
            del waiting[: len(jobs)]
        del self._waiting[stream_id]

    async def _settle(self, stream_id: str, jobs: list[Job]) -> None:
        for attempt in range(TRIES):
            hot = self._hot.get(stream_id) if attempt == 0 else None
            state, version = hot or await self._load(stream_id)
            write, after, reached = await self._decide_all(stream_id, jobs, state, version)
            # A remembered state is only a guess. The lock proves it where events are appended; a refusal or
            # a "nothing to do" has no such proof and is decided again on what is stored.
            if hot and any(not isinstance(job.outcome, Handled) or not job.outcome.events for job in jobs):
                continue
            try:
                if write:
                    await self._store.append(write)
            except Conflict:
                self._hot.pop(stream_id, None)
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))
                continue
            self._remember(stream_id, after, reached)
            if self._snapshots.wanted(version, reached):
                await self._snapshots.save(stream_id, after, reached)
            return
        raise Contended(f"{stream_id} was written by others {TRIES} times in a row.")

    async def _decide_all(
        self, stream_id: str, jobs: list[Job], state: State, version: int
    ) -> tuple[Write, State, int]:
        write = Write()
        for job in jobs:
            if job.request and (answered := await self._answered(job.context.actor, job.request, write)):
                job.outcome = answered
                continue
            outcome = self._decide(stream_id, job, state, version)
            job.outcome = outcome
            if isinstance(outcome, Handled) and outcome.events:
                self._record(write, outcome, job.context, version)
                state, version = outcome.state, outcome.version
            if job.request and isinstance(outcome, Handled | Refused):
                answer = job.request.answer(outcome)
                write.answers.append(
                    StoredAnswer(job.context.actor, job.request.key, job.request.digest, *answer, now())
                )
        return write, state, version

    async def _answered(self, actor: str, request: Request, write: Write) -> StoredAnswer | KeyReused | None:
        here = next((a for a in write.answers if (a.actor, a.key) == (actor, request.key)), None)
        before = here or await self._store.answer(actor, request.key)
        if before and before.request != request.digest:
            return KeyReused("This Idempotency-Key was used with another request.")
        return before

    def _decide(self, stream_id: str, job: Job, state: State, version: int) -> Handled[State, Event] | Exception:
        if job.expected is not None and job.expected != version:
            return StaleVersion(version)
        try:
            events = self.decider.decide(job.command, state)
        except Refused as refused:
            return refused
        for event in events:
            state = self.decider.evolve(state, event)
        return Handled(stream_id, state, version + len(events), events)

    def _record(self, write: Write, handled: Handled[State, Event], context: Context, version: int) -> None:
        time, deadlines = now(), self.decider.deadlines
        for event in handled.events:
            version += 1
            recorded = Recorded(
                handled.stream_id,
                version,
                str(uuid7()),
                type(event).__name__,
                time,
                context.correlation_id,
                context.causation_id,
                context.actor,
                context.traceparent,
                self._codec.encode(event),
            )
            headers = pack_headers(cloud_event_headers(recorded, self._source))
            write.events.append(recorded)
            write.messages.append(Message(self.decider.topic, handled.stream_id, recorded.value, headers, time))
            if deadlines and (due := deadlines.due(event)) is not None:
                write.deadlines.append((handled.stream_id, from_millis(due), version))
        announce = self.decider.announce
        for announced in announce(handled.state, handled.version) if announce else ():
            document = recorded._replace(
                type=type(announced.document).__name__, value=self._codec.encode(announced.document)
            )
            headers = pack_headers(cloud_event_headers(document, self._source))
            write.messages.append(Message(announced.topic, announced.key, document.value, headers, time))

    async def _load(self, stream_id: str) -> tuple[State, int]:
        return (await self._load_all([stream_id]))[stream_id]

    async def _load_all(
        self, stream_ids: Collection[str], source: "Connection | None" = None
    ) -> dict[str, tuple[State, int]]:
        """Fold what is stored on top of what is remembered, or of the snapshot, or of nothing."""
        cold = [stream_id for stream_id in stream_ids if stream_id not in self._hot]
        snapshots = await self._snapshots.load(cold, source) if cold else {}
        nothing = self.decider.initial, 0
        states = {it: self._hot.get(it) or snapshots.get(it, nothing) for it in stream_ids}
        waiting = list(states)
        while waiting:
            news = await self._store.load_all({it: states[it][1] for it in waiting}, source, CHUNK)
            for stream_id, values in news.items():
                state, version = states[stream_id]
                states[stream_id] = await self._fold(stream_id, state, version, values)
            waiting = [stream_id for stream_id, values in news.items() if len(values) == CHUNK]
        for stream_id, (state, version) in states.items():
            if version:
                self._remember(stream_id, state, version)
        return states

    async def _fold(self, stream_id: str, state: State, version: int, values: Sequence[bytes]) -> tuple[State, int]:
        decode, evolve = self._codec.decode, self.decider.evolve
        for value in values:
            try:
                event = decode(value)
            except UnknownSchema:
                if self._decode_new is None:
                    raise
                event = await self._decode_new(value)
            state = evolve(state, event)
        reached = version + len(values)
        if self._snapshots.wanted(version, reached):
            await self._snapshots.save(stream_id, state, reached)
        return state, reached

    def _remember(self, stream_id: str, state: State, version: int) -> None:
        remembered = self._hot.get(stream_id)
        if remembered is None or remembered[1] < version:
            self._hot[stream_id] = (state, version)
        self._hot.move_to_end(stream_id)
        if len(self._hot) > CACHED_STREAMS:
            self._hot.popitem(last=False)


def _told(error: Exception) -> Exception:
    return Unavailable(f"PostgreSQL: {error!r}") if is_away(error) else error
