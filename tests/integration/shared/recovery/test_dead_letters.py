"""A dead letter is known by its death, not by its place, and has the message as it was."""

import pytest

from shared.deadletters import LIMIT, letter_at
from shared.errors import OperatorError
from shared.settling import FailedAgain, NoConsumer, drop, retry, settled
from tests.integration.dying import OLGA, POISON, all_letters, consumed, die, effects, mended, note_but_choke
from tests.integration.kit import Record, Tallies, add, create_topics, delete_topics, handled, relayed, send

pytestmark = pytest.mark.anyio


async def test_a_letter_that_a_dying_relay_sent_twice_is_one(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    send(tallies.settings, tallies.dead_letter_topic, tallies.dead_letters())
    assert len(tallies.dead_letters()) == 2
    assert await all_letters(tallies) == [letter]
    copy = await letter_at(tallies.settings, tallies.dead_letter_topic, 0, 1)
    assert (copy.id, copy.death) == (f"{tallies.dead_letter_topic}/0/1", letter.death)
    async with mended(tallies).opened() as runtime:
        assert await retry(runtime, copy, OLGA) is None
        assert await retry(runtime, letter, OLGA)
        assert await effects(runtime) == [("tally:a", POISON)]


async def test_a_letter_at_the_offset_of_a_settled_one_is_another_when_the_topic_was_made_anew(
    tallies: Tallies,
) -> None:
    first, second = await die(tallies, "tally:a", "tally:b")
    [_, later] = tallies.dead_letters()
    async with mended(tallies).opened() as runtime:
        await drop(runtime.pool, first, "lost with its topic", OLGA)
        await delete_topics(tallies.settings, [tallies.dead_letter_topic])
        await create_topics(tallies.settings, {tallies.dead_letter_topic: 1})
        send(tallies.settings, tallies.dead_letter_topic, [later])
        [found] = await all_letters(tallies)
        assert (found.id, found.death) == (first.id, second.death)
        assert await retry(runtime, found, OLGA) is None


async def test_a_message_that_is_read_again_and_dies_again_is_another_letter(tallies: Tallies) -> None:
    """As when a view is built anew: what was settled for the old one is missing in the new."""
    [first] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        await drop(runtime.pool, first, "it does not matter", OLGA)
        await runtime.pool.execute("UPDATE offsets SET next_offset = 0")
        await consumed(runtime, 1)
        [_, second] = await all_letters(tallies)
        assert first.death[:4] == second.death[:4]
        assert second.death not in await settled(runtime.pool)


async def test_a_message_too_large_for_its_letter_is_read_where_it_came_from(tallies: Tallies) -> None:
    async with mended(tallies).opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        [record] = tallies.records()
        padded = record._replace(headers=(), value=(record.value or b"") + bytes(LIMIT))
        send(tallies.settings, tallies.topic, [padded])
        await runtime.pool.execute("CREATE TABLE effects (stream_id text, version int, amount bigint)")
        await consumed(runtime, 2)
        [letter] = await all_letters(tallies)
        assert (letter.original.value, letter.left_out[:6]) == (b"", str(len(padded.value or b"")))
        # The bytes that are left over are in the original alone: it was read.
        with pytest.raises(FailedAgain, match=f"{LIMIT} bytes are left over"):
            await retry(runtime, letter, OLGA)
        await delete_topics(tallies.settings, [tallies.topic])
        with pytest.raises(FailedAgain, match="no longer where it was read"):
            await retry(runtime, letter, OLGA)


async def test_what_others_put_into_the_topic_can_be_seen_and_dropped(tallies: Tallies) -> None:
    send(tallies.settings, tallies.dead_letter_topic, [Record(0, 0, b"k", b"hello", (("a", b"b"),), 1_700_000_000_000)])
    [letter] = await all_letters(tallies)
    assert (letter.reason, letter.death.consumer) == ("not written by a consumer of ours", "")
    assert (letter.original.value, list(letter.original.headers)) == (b"hello", [("a", b"b")])
    async with mended(tallies).opened() as runtime:
        with pytest.raises(NoConsumer):
            await retry(runtime, letter, OLGA)
        assert await drop(runtime.pool, letter, "not ours", OLGA) is None


async def test_the_message_of_a_letter_is_the_message_as_it_was_even_if_it_had_been_a_letter_before(
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


async def test_a_place_where_there_is_no_letter_is_told(tallies: Tallies) -> None:
    await die(tallies, "tally:a")
    for topic, partition, offset in [
        (tallies.dead_letter_topic, 0, 1),
        (tallies.dead_letter_topic, 1, 0),
        ("nobody.dlq", 0, 0),
    ]:
        with pytest.raises(OperatorError, match=f"There is no dead letter {topic}/{partition}/{offset}"):
            await letter_at(tallies.settings, topic, partition, offset)
