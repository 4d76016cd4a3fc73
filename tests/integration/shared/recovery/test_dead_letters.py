"""A dead letter is identified by its death, not by its offset, and holds the message as it was."""

import pytest

from shared.errors import OperatorError
from shared.recovery.dead_letter_queue import read_letter
from shared.recovery.dead_letters import MAX_BYTES
from shared.recovery.retry import FailedAgain, NoConsumer, retry
from shared.recovery.settlements import drop, read_settlements
from tests.integration.shared.dead_lettering import (
    OLGA,
    POISON,
    all_letters,
    consumed,
    die,
    effects,
    note_but_choke,
    repaired,
)
from tests.integration.shared.tallies import Tallies, add, handled, relayed
from tests.integration.shared.topics import Record, create_topics, delete_topics, send

pytestmark = pytest.mark.anyio


async def test_a_dead_letter_that_a_dying_relay_sent_twice_is_one_letter(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    send(tallies.settings, tallies.dead_letter_topic, tallies.dead_letters())
    assert len(tallies.dead_letters()) == 2
    assert await all_letters(tallies) == [letter]
    copy = await read_letter(tallies.settings, tallies.dead_letter_topic, 0, 1)
    assert (copy.id, copy.death) == (f"{tallies.dead_letter_topic}/0/1", letter.death)
    async with repaired(tallies).opened() as runtime:
        assert await retry(runtime, copy, OLGA) is None
        assert await retry(runtime, letter, OLGA)
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_a_dead_letter_at_the_offset_of_a_settled_one_is_another_after_the_topic_was_recreated(
    tallies: Tallies,
) -> None:
    first, second = await die(tallies, "tally:a", "tally:b")
    [_, later] = tallies.dead_letters()
    async with repaired(tallies).opened() as runtime:
        await drop(runtime.pool, first, "lost with its topic", OLGA)
        await delete_topics(tallies.settings, [tallies.dead_letter_topic])
        await create_topics(tallies.settings, {tallies.dead_letter_topic: 1})
        send(tallies.settings, tallies.dead_letter_topic, [later])
        [found] = await all_letters(tallies)
        assert (found.id, found.death) == (first.id, second.death)
        assert await retry(runtime, found, OLGA) is None


async def test_a_message_that_fails_again_after_a_reread_is_another_dead_letter(tallies: Tallies) -> None:
    """This happens when a view is rebuilt: a letter settled for the old view is missing in the new one."""
    [first] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        await drop(runtime.pool, first, "it does not matter", OLGA)
        await runtime.pool.execute("UPDATE offsets SET next_offset = 0")
        await consumed(runtime, 1)
        [_, second] = await all_letters(tallies)
        assert first.death[:4] == second.death[:4]
        assert second.death not in await read_settlements(runtime.pool)


async def test_a_message_too_large_for_its_dead_letter_is_read_from_its_original_topic(tallies: Tallies) -> None:
    async with repaired(tallies).opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        [record] = tallies.records()
        padded = record._replace(headers=(), value=(record.value or b"") + bytes(MAX_BYTES))
        send(tallies.settings, tallies.topic, [padded])
        await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")
        await consumed(runtime, 2)
        [letter] = await all_letters(tallies)
        assert (letter.original.value, letter.left_out[:6]) == (b"", str(len(padded.value or b"")))
        # Only the original has the bytes that are left over, so it was read.
        with pytest.raises(FailedAgain, match=f"{MAX_BYTES} bytes are left over"):
            await retry(runtime, letter, OLGA)
        await delete_topics(tallies.settings, [tallies.topic])
        with pytest.raises(FailedAgain, match="no longer in its original topic"):
            await retry(runtime, letter, OLGA)


async def test_a_foreign_record_in_the_dead_letter_queue_can_be_seen_and_dropped(tallies: Tallies) -> None:
    send(tallies.settings, tallies.dead_letter_topic, [Record(0, 0, b"k", b"hello", (("a", b"b"),), 1_700_000_000_000)])
    [letter] = await all_letters(tallies)
    assert (letter.reason, letter.death.consumer) == ("not written by a consumer of ours", "")
    assert (letter.original.value, list(letter.original.headers)) == (b"hello", [("a", b"b")])
    async with repaired(tallies).opened() as runtime:
        with pytest.raises(NoConsumer):
            await retry(runtime, letter, OLGA)
        assert await drop(runtime.pool, letter, "not ours", OLGA) is None


async def test_a_dead_letter_of_a_dead_letter_holds_the_message_as_it_was(
    tallies: Tallies,
) -> None:
    await die(tallies, "tally:a")
    [dead], [sent] = tallies.dead_letters(), tallies.records()
    send(tallies.settings, tallies.topic, [dead._replace(partition=sent.partition)])
    async with tallies.following(note_but_choke).opened() as runtime:
        await consumed(runtime, 2)
    first, second = await all_letters(tallies)
    assert (first.original.key, first.original.value, tuple(first.original.headers)) == sent.content[:3]
    assert (second.original.key, second.original.value, tuple(second.original.headers)) == dead.content[:3]
    assert [letter.death.offset for letter in (first, second)] == [0, 1]


async def test_an_offset_without_a_dead_letter_is_reported(tallies: Tallies) -> None:
    await die(tallies, "tally:a")
    for topic, partition, offset in [
        (tallies.dead_letter_topic, 0, 1),
        (tallies.dead_letter_topic, 1, 0),
        ("nobody.dlq", 0, 0),
    ]:
        with pytest.raises(OperatorError, match=f"There is no dead letter {topic}/{partition}/{offset}"):
            await read_letter(tallies.settings, topic, partition, offset)
