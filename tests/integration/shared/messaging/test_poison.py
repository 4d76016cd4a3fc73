"""Poison messages become dead letters with the reason and all their bytes, and the next message is applied."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import pytest

from infra.settings import Settings
from shared.messaging.incoming import Incoming
from shared.recovery.dead_letters import MAX_BYTES, MAX_METADATA_BYTES
from shared.store.database import Connection
from tests.integration.shared.effects import Effects, effects, fill, make_effects, note, until_reached
from tests.integration.shared.loops import running
from tests.integration.shared.tallies import Tallies, add, handled, new_tallies, relayed
from tests.integration.shared.topics import Record, create_topics, delete_topics, send

pytestmark = pytest.mark.anyio


async def note_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
    await note(connection, messages)
    if any(message.data.amount == 666 for message in messages):
        try:
            raise KeyError("shelf")
        except KeyError as missing:
            raise RuntimeError("cannot apply 666") from missing


async def test_a_poison_message_blocks_no_other_partition(tallies: Tallies) -> None:
    async with tallies.following(note_but_choke).opened() as runtime:
        await make_effects(runtime)
        await handled(runtime, "tally:3", add(7, 666, 8))
        expected = await fill(runtime, streams=3) | {("tally:3", 1): 1, ("tally:3", 3): 1}
        async with running(runtime.consumers[0].run()):
            await until_reached(runtime, len(expected) + 1)
        assert await effects(runtime) == expected
        [letter] = await runtime.pool.fetch("SELECT topic, key FROM outbox")
        assert tuple(letter) == (tallies.dead_letter_topic, "tally:3")


Spoil = Callable[[Record], Record]


def header(name: str, value: bytes | None) -> Spoil:
    def spoil(record: Record) -> Record:
        headers = {key: kept for key, kept in record.headers if key != name}
        return record._replace(headers=tuple((headers | ({name: value} if value is not None else {})).items()))

    return spoil


def value(change: Callable[[bytes], bytes | None]) -> Spoil:
    return lambda record: record._replace(value=change(record.value or b""))


POISON: dict[str, tuple[Spoil, str]] = {
    "not the wire format": (value(lambda _: b"hello"), "not in the wire format"),
    "empty": (value(lambda _: b""), "not in the wire format"),
    "a schema id nobody knows": (value(lambda v: b"\0\0\xff\xff\xff" + v[5:]), "no schema with id 16777215"),
    "a schema id of all ones": (value(lambda v: b"\0\xff\xff\xff\xff" + v[5:]), "no schema with id 4294967295"),
    "cut off": (value(lambda v: v[:5]), "not a tests.tally.Added"),
    "trailing bytes": (value(lambda v: v + b"\0\0"), "2 bytes are left over"),
    "a tombstone": (value(lambda _: None), "no value"),
    "no stream": (header("ce_subject", None), "ce_subject"),
    "no headers at all": (lambda record: record._replace(headers=()), "is missing"),
    "a version that is no number": (header("ce_streamversion", b"three"), "invalid literal"),
    "a version out of range": (header("ce_streamversion", b"99999999999"), "out of"),
    "a time that is none": (header("ce_time", b"noon"), "Invalid isoformat"),
    "a stream id that no text column holds": (header("ce_subject", b"tally:\0"), "0x00"),
    "a key that is no text": (lambda record: record._replace(key=b"\0\xff", value=b"hello"), "not in the wire format"),
    "megabytes, compressed": (value(lambda _: bytes(3 * 1024**2)), "no schema with id 0"),
    "headers and a key that fill a message": (
        lambda record: record._replace(key=b"\xff" * 450_000, value=b"hello", headers=(("x", bytes(450_000)),)),
        "not in the wire format",
    ),
    "one that the view chokes on": (lambda record: record, "RuntimeError: cannot apply 666"),
}


@dataclass(frozen=True)
class Graveyard:
    sent: dict[str, Record]
    dead: dict[str, Record]
    effects: Effects
    waiting: int


@pytest.fixture(scope="module")
async def graveyard(stack: Settings) -> AsyncIterator[Graveyard]:
    """Sends every kind of poison to one partition, with a good message after each, and returns what became of them."""
    async with new_tallies(stack, partitions=1) as tallies, tallies.following(note_but_choke).opened() as runtime:
        await make_effects(runtime)
        await handled(runtime, "tally:good", add(*range(1, len(POISON) + 1)))
        await handled(runtime, "tally:bad", add(*[1] * (len(POISON) - 1), 666))
        await relayed(runtime)
        good, bad = tallies.records()[: len(POISON)], tallies.records()[len(POISON) :]
        poison = {kind: spoil(bad[n]) for n, (kind, (spoil, _)) in enumerate(POISON.items())}
        await delete_topics(stack, [tallies.topic])
        await create_topics(stack, {tallies.topic: 1})
        send(stack, tallies.topic, [record for pair in zip(poison.values(), good, strict=True) for record in pair])
        async with running(runtime.consumers[0].run(), runtime.relay.run()):
            await until_reached(runtime, 2 * len(POISON))
            await asyncio.wait_for(runtime.relay.wait_until_drained(), 20)
        dead = tallies.dead_letters()
        by_offset = {int(letter.header("dlq_offset")): letter for letter in dead}
        yield Graveyard(
            poison,
            {kind: by_offset[2 * n] for n, kind in enumerate(POISON) if 2 * n in by_offset},
            await effects(runtime),
            len(dead),
        )


async def test_every_message_after_a_poison_message_is_applied_once(graveyard: Graveyard) -> None:
    assert graveyard.effects == {("tally:good", n): 1 for n in range(1, len(POISON) + 1)}
    assert graveyard.waiting == len(POISON), "each poison message makes one dead letter, and nothing else does"


@pytest.mark.parametrize("kind", POISON)
async def test_a_poison_message_becomes_a_dead_letter_with_reason_bytes_and_headers(
    graveyard: Graveyard, kind: str
) -> None:
    sent, letter = graveyard.sent[kind], graveyard.dead[kind]
    assert POISON[kind][1] in letter.header("dlq_reason")
    assert letter.header("dlq_causes").splitlines()[0] == letter.header("dlq_reason")
    assert '  File "' in letter.header("dlq_trace")
    assert letter.header("dlq_trace").rstrip().endswith(letter.header("dlq_reason"))
    assert letter.header("dlq_consumer").endswith(".effects")
    assert (letter.header("dlq_topic"), letter.header("dlq_partition")) == (
        letter.header("dlq_consumer").replace(".effects", ".events"),
        "0",
    )
    around = len(sent.key or b"") + sum(len(text) for _, text in sent.headers)
    if around <= MAX_METADATA_BYTES:
        assert letter.headers[: len(sent.headers)] == sent.headers
        assert dict(letter.headers)["dlq_key"] == sent.key
    if len(sent.value or b"") + around <= MAX_BYTES:
        assert letter.value == (sent.value or b"")
    else:
        assert letter.header("dlq_left_out").startswith(f"{len(sent.value or b'')} bytes")


async def test_a_dead_letter_has_the_whole_chain_of_causes(graveyard: Graveyard) -> None:
    letter = graveyard.dead["one that the view chokes on"]
    assert letter.header("dlq_causes").splitlines() == ["RuntimeError: cannot apply 666", "KeyError: 'shelf'"]
