"""Recording: a decision becomes events, outbox messages, announced documents and moments to look again."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from shared.decider import Announcement, Deadlines, Decider, Versioned
from shared.envelope import Context, from_millis, now, unpack_headers
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import EventSchema
from shared.store.event_store import Write
from shared.store.recording import Recorder


@dataclass(frozen=True)
class Counted:
    number: int


@dataclass(frozen=True)
class Latest:
    number: int


def evolve(_state: int, event: Counted) -> int:
    return event.number


def decide(command: list[int], _state: int) -> list[Counted]:
    return [Counted(number) for number in command]


BOARD, SHELF = Announcement("board", "b", Latest(0)), Announcement("shelf", "s", Latest(0))
DEADLINES: Deadlines[int, list[int], Counted] = Deadlines(lambda e: e.number * 1000, lambda _: [], lambda _: None)
ANN = Context("ann", "correlation", "cause", "trace")


@pytest.fixture(scope="module")
def codec() -> Codec:
    codec = Codec()
    for schema_id, kind in enumerate((Counted, Latest)):
        fields = [{"name": "number", "type": "long"}]
        record = {"type": "record", "name": kind.__name__, "namespace": "tests", "fields": fields}
        codec.bind(kind, EventSchema("tests", f"tests.{kind.__name__}", 1, "topic", record), schema_id)
    return codec


def recorded(codec: Codec, command: list[int], decider: Decider[int, list[int], Counted], **how: object) -> Write:
    before = Versioned("count:a", 0, 4)
    write = Write()
    Recorder(decider, codec, "/source", **how).record(write, before, decider.handle(command, before), ANN)  # type: ignore[arg-type]
    return write


def decider(deadlines: Deadlines[int, list[int], Counted] | None = None) -> Decider[int, list[int], Counted]:
    return Decider("count", "topic", 0, decide, evolve, deadlines)


def announcing() -> Decider[int, list[int], Counted]:
    return Decider("count", "topic", 0, decide, evolve, announce=lambda _state, _version: [BOARD, SHELF])


def ids(write: Write) -> list[bytes]:
    return [dict(unpack_headers(message.headers))["ce_id"] for message in write.messages]


def test_each_event_has_the_next_version_and_a_message_with_its_own_bytes(codec: Codec) -> None:
    write = recorded(codec, [7, 8], decider())
    assert [(event.version, event.type, event.actor) for event in write.events] == [
        (5, "Counted", "ann"),
        (6, "Counted", "ann"),
    ]
    assert [(m.topic, m.key, m.value) for m in write.messages] == [
        ("topic", "count:a", event.value) for event in write.events
    ]
    assert ids(write) == [event.event_id.encode() for event in write.events]


def test_an_announced_document_has_an_id_of_its_own(codec: Codec) -> None:
    write = recorded(codec, [7], announcing())
    assert [message.topic for message in write.messages] == ["topic", "board", "shelf"]
    assert len(set(ids(write))) == 3


def test_the_id_of_an_announced_document_follows_from_its_event(codec: Codec) -> None:
    recorder = Recorder(announcing(), codec, "/source")
    event = recorded(codec, [7], decider()).events[0]
    again = [recorder.document(BOARD, event) for _ in range(2)]
    assert again[0] == again[1]
    assert again[0].event_id != recorder.document(SHELF, event).event_id
    other = event._replace(event_id="0190a5c0-0000-7000-8000-0000000000aa")
    assert again[0].event_id != recorder.document(BOARD, other).event_id


def test_the_last_deadline_that_a_decision_sets_counts(codec: Codec) -> None:
    assert recorded(codec, [7, 8], decider(DEADLINES)).deadlines == {"count:a": (from_millis(8000), 6)}


def test_an_errand_is_due_at_once_and_only_when_the_state_wants_another_one(codec: Codec) -> None:
    def errand(state: int) -> str | None:
        return f"errand {state // 10}" if state >= 10 else None

    wanted = recorded(codec, [5, 10], decider(), errand=errand).deadlines["count:a"]
    assert wanted[1] == 6
    assert now() - wanted[0] < timedelta(minutes=1)
    assert recorded(codec, [5], decider(), errand=errand).deadlines == {}
    write = Write()
    before = Versioned("count:a", 10, 4)
    Recorder(decider(), codec, "/source", errand).record(write, before, decider().handle([11], before), ANN)
    assert write.deadlines == {}, "the errand that is under way was scheduled a second time"
