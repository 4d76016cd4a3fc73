"""The command handler with a store in memory: load, fold, decide, record, append, and again after a conflict.

The same promises are tested with PostgreSQL and several processes in tests/integration/shared/test_handler.py.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from shared.decider import Decided, Decider
from shared.envelope import Context
from shared.errors import Contended, KeyReused, Refused, StaleVersion
from shared.handler import ATTEMPTS, CommandHandler
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.decoder import Decoder
from shared.store.answers import KeyedRequest, StoredAnswer
from shared.store.event_store import Conflict, Write
from shared.store.recording import Recorder
from shared.store.states import States

pytestmark = pytest.mark.anyio

ANN = Context("ann")
LIMIT = 10


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Counted:
    number: int


def decide(number: int, total: int) -> list[Counted]:
    if total + number > LIMIT:
        raise Refused("too-many", f"{total} and {number} are more than {LIMIT}.")
    return [Counted(number)] if number else []


def evolve(total: int, event: Counted) -> int:
    return total + event.number


DECIDER = Decider("count", "counts", 0, decide, evolve)
SCHEMA = EventSchema(
    "tests",
    "tests.Counted",
    1,
    "counts",
    {"type": "record", "name": "Counted", "namespace": "tests", "fields": [{"name": "number", "type": "long"}]},
)


def new_codec() -> Codec:
    codec = Codec()
    codec.bind(Counted, SCHEMA, 1)
    Decoder(Schemas([SCHEMA]), [], {SCHEMA.record: Counted}, codec).learn(1, SCHEMA.text)
    return codec


CODEC = new_codec()


class MemoryStore:
    """An event store in memory that notes every load and append. A rival is another process: it appends first."""

    def __init__(self) -> None:
        self.streams: dict[str, list[bytes]] = {}
        self.answers: dict[tuple[str, str], StoredAnswer] = {}
        self.rivals: list[Callable[[], None]] = []
        self.loads = 0
        self.appends: list[int] = []
        self.pool = self

    def add(self, stream_id: str, *numbers: int) -> None:
        self.streams.setdefault(stream_id, []).extend(CODEC.encode(Counted(number)) for number in numbers)

    async def load_all(self, reached: Mapping[str, int], _source: object, _limit: int) -> dict[str, list[bytes]]:
        self.loads += 1
        return {stream: later for stream, after in reached.items() if (later := self.streams.get(stream, [])[after:])}

    async def append(self, write: Write) -> None:
        if self.rivals:
            self.rivals.pop()()
        if any(event.version <= len(self.streams.get(event.stream_id, ())) for event in write.events):
            raise Conflict
        for event in write.events:
            self.streams.setdefault(event.stream_id, []).append(event.value)
        self.answers |= {(answer.actor, answer.key): answer for answer in write.answers}
        self.appends.append(len(write.events))

    async def fetchrow(self, _query: str, actor: str, key: str) -> StoredAnswer | None:
        return self.answers.get((actor, key))


class NoSnapshots:
    async def load(self, _stream_ids: object, _source: object) -> dict[str, tuple[int, int]]:
        return {}

    def due(self, _before: int, _after: int) -> bool:
        return False


def handler_on(store: Any) -> CommandHandler[int, int, Counted]:
    no_snapshots: Any = NoSnapshots()
    return CommandHandler(DECIDER, store, States(DECIDER, store, CODEC, no_snapshots), Recorder(DECIDER, CODEC, "/s"))


class Rendering:
    """Renders answers, and notes each."""

    def __init__(self) -> None:
        self.rendered: list[bytes] = []

    def __call__(self, outcome: Decided[Any, Any] | Refused) -> tuple[int, bytes, bytes]:
        body = outcome.message if isinstance(outcome, Refused) else f"{outcome.state} at {outcome.version}"
        self.rendered.append(body.encode())
        return 409 if isinstance(outcome, Refused) else 200, b"", body.encode()

    def request(self, digest: bytes = b"digest") -> KeyedRequest:
        return KeyedRequest("key", digest, self)


async def test_a_command_is_decided_on_the_folded_events_and_its_own_are_appended() -> None:
    store = MemoryStore()
    store.add("count:a", 1, 2)
    assert await handler_on(store).handle("count:a", 4, ANN) == Decided("count:a", 7, 3, [Counted(4)])
    assert [CODEC.decode(value) for value in store.streams["count:a"]] == [Counted(1), Counted(2), Counted(4)]


async def test_a_command_that_lost_a_race_is_decided_again_on_what_the_winner_appended() -> None:
    store = MemoryStore()
    store.rivals = [lambda: store.add("count:a", 9)]
    with pytest.raises(Refused, match="9 and 4 are more than 10"):
        await handler_on(store).handle("count:a", 4, ANN)
    store.rivals = [lambda: store.add("count:b", 5)]
    assert (await handler_on(store).handle("count:b", 4, ANN)).state == 9
    assert [len(store.streams[stream]) for stream in ("count:a", "count:b")] == [1, 2]


async def test_a_command_that_loses_every_race_is_contended_and_writes_nothing() -> None:
    store = MemoryStore()
    store.rivals = [lambda: store.add("count:a", 0)] * ATTEMPTS
    with pytest.raises(Contended):
        await handler_on(store).handle("count:a", 4, ANN)
    assert {CODEC.decode(value) for value in store.streams["count:a"]} == {Counted(0)}
    assert store.appends == []


async def test_commands_that_wait_together_share_an_append_and_each_has_its_own_outcome() -> None:
    store = MemoryStore()
    handler = handler_on(store)
    outcomes = await asyncio.gather(
        *(handler.handle("count:a", number, ANN) for number in (4, 4, 4, 2)), return_exceptions=True
    )
    assert [it.version if isinstance(it, Decided) else type(it) for it in outcomes] == [1, 2, Refused, 3]
    assert store.appends == [3]


async def test_a_cached_state_saves_the_load_of_a_command_that_appends() -> None:
    store = MemoryStore()
    handler = handler_on(store)
    for number in (1, 2, 3):
        await handler.handle("count:a", number, ANN)
    assert (store.loads, store.appends) == (1, [1, 1, 1])


@pytest.mark.parametrize(("number", "state"), [(4, 8), (0, 4)])
async def test_a_refusal_and_nothing_to_do_are_decided_on_stored_events_and_never_on_the_cache(
    number: int, state: int
) -> None:
    store = MemoryStore()
    handler = handler_on(store)
    await handler.handle("count:a", 9, ANN)
    store.add("count:a", -5)  # by another process: the cached state, 9, is out of date
    assert (await handler.handle("count:a", number, ANN)).state == state


async def test_a_command_for_a_version_that_has_passed_is_stale() -> None:
    store = MemoryStore()
    store.add("count:a", 1, 2)
    with pytest.raises(StaleVersion) as stale:
        await handler_on(store).handle("count:a", 4, ANN, expected=1)
    assert stale.value.version == 2
    assert store.appends == []


async def test_the_answer_to_a_keyed_request_is_rendered_once_stored_with_its_events_and_repeated() -> None:
    store, rendering = MemoryStore(), Rendering()
    handler = handler_on(store)
    first = await handler.handle_once("count:a", 4, ANN, rendering.request())
    again = await handler.handle_once("count:a", 4, ANN, rendering.request())
    assert rendering.rendered == [b"4 at 1"]
    assert first.answer == again.answer == store.answers["ann", "key"]
    assert (first.replayed, again.replayed) == (False, True)
    assert store.appends == [1]


async def test_the_stored_answer_shows_what_was_committed_and_not_what_lost_the_race() -> None:
    store, rendering = MemoryStore(), Rendering()
    store.rivals = [lambda: store.add("count:a", 5)]
    answered = await handler_on(store).handle_once("count:a", 4, ANN, rendering.request())
    assert rendering.rendered == [b"4 at 1", b"9 at 2"]
    assert answered.answer.body == store.answers["ann", "key"].body == b"9 at 2"


async def test_a_refusal_of_a_keyed_request_is_stored_without_events() -> None:
    store, rendering = MemoryStore(), Rendering()
    answered = await handler_on(store).handle_once("count:a", 11, ANN, rendering.request())
    assert (answered.answer.status, answered.answer.body) == (409, b"0 and 11 are more than 10.")
    assert (store.answers["ann", "key"], store.appends) == (answered.answer, [0])


async def test_a_key_that_came_with_another_request_is_refused() -> None:
    store, rendering = MemoryStore(), Rendering()
    handler = handler_on(store)
    await handler.handle_once("count:a", 4, ANN, rendering.request(b"one"))
    with pytest.raises(KeyReused):
        await handler.handle_once("count:a", 4, ANN, rendering.request(b"another"))
    assert store.appends == [1]
