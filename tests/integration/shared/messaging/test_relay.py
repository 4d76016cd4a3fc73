"""From the outbox to the topic: nothing lost, nothing overtaken, and only what was acknowledged is deleted."""

import asyncio
import random

import pytest

from shared.envelope import Message, Recorded, cloud_event_headers, millis, now, pack_headers
from shared.relay import Relay
from shared.service import Runtime
from shared.store import LARGEST, TooLarge, Write, execute
from tests.integration.kit import ANN, Tallies, add, by_stream, handled, relayed, running, stop, until

pytestmark = pytest.mark.anyio


def write_of(runtime: Runtime, stream_id: str, version: int, value: bytes = b"\0late") -> Write:
    """What a command handler would append, for a transaction whose end the test decides."""
    event = Recorded(
        stream_id,
        version,
        f"00000000-0000-7000-8000-{version:012}",
        "Added",
        now(),
        "correlation",
        "",
        ANN.actor,
        "",
        value,
    )
    headers = pack_headers(cloud_event_headers(event, runtime.service.source))
    return Write([event], [Message(runtime.service.decider.topic, stream_id, value, headers, event.time)])


async def put_into_outbox(runtime: Runtime, message: Message) -> None:
    """Past `execute`, which would refuse what is too large, and send the notice."""
    await runtime.pool.execute(
        "INSERT INTO outbox (topic, key, value, headers, time) VALUES ($1, $2, $3, $4, $5)", *message
    )


async def is_empty(runtime: Runtime) -> bool:
    return not await runtime.pool.fetchval("SELECT EXISTS (SELECT FROM outbox)")


async def test_eight_writers_at_once_lose_nothing_and_keep_every_stream_in_order(tallies: Tallies) -> None:
    async with tallies.processes(2) as processes, running(*(process.relay.run() for process in processes)):

        async def shop(writer: int) -> None:
            for n in range(40):
                await handled(processes[writer % 2], f"tally:{(writer * 7 + n) % 20}", add(1, 2))

        await asyncio.gather(*map(shop, range(8)))
        await until(lambda: is_empty(processes[0]))
        stored = [(event.stream_id, event.version, event.value) async for _, event in processes[0].store.read()]
    records = tallies.records()
    assert len(stored) == 8 * 40 * 2
    assert all(versions == list(range(1, len(versions) + 1)) for versions in by_stream(records).values())
    assert sorted(stored) == sorted(
        (r.header("ce_subject"), int(r.header("ce_streamversion")), r.value) for r in records
    )


async def test_a_message_is_what_the_outbox_held(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(5))
        [event] = await runtime.store.history("tally:a")
        await relayed(runtime)
    [record] = tallies.records()
    assert (record.key, record.value) == (b"tally:a", event.value)
    assert list(record.headers) == cloud_event_headers(event, tallies.service.source)
    assert record.timestamp == millis(event.time)


async def test_a_transaction_that_commits_late_is_published_late_but_published(tallies: Tallies) -> None:
    async with tallies.opened() as runtime, running(runtime.relay.run()):
        async with runtime.pool.acquire() as slow, slow.transaction():
            await execute(slow, [write_of(runtime, "tally:late", 1)])
            late = await slow.fetchval("SELECT max(position) FROM outbox WHERE key = 'tally:late'")
            await handled(runtime, "tally:early", add(1))
            latest = await runtime.pool.fetchval("SELECT last_value FROM outbox_position_seq")
            await until(lambda: is_empty(runtime))
            assert by_stream(tallies.records()) == {"tally:early": [1]}
        assert late < latest, "the positions do not tell the story this test is about"
        await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:early": [1], "tally:late": [1]}


async def test_commits_in_any_order_under_a_busy_relay_lose_nothing(tallies: Tallies) -> None:
    """Every transaction keeps its positions for a while before it commits: rounds of the relay fall in between."""
    async with tallies.opened() as runtime, running(runtime.relay.run()):

        async def dawdle(writer: int) -> None:
            dice = random.Random(writer)
            for version in range(1, 26):
                async with runtime.pool.acquire() as connection, connection.transaction():
                    await execute(connection, [write_of(runtime, f"tally:{writer}", version)])
                    await asyncio.sleep(dice.uniform(0, 0.01))

        await asyncio.gather(*map(dawdle, range(5)))
        await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {f"tally:{n}": list(range(1, 26)) for n in range(5)}


async def test_what_no_broker_takes_is_not_stored_and_takes_nobody_with_it(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        large, small = (write_of(runtime, f"tally:{size}", 1, bytes(size)) for size in (LARGEST, 10))
        told = await asyncio.gather(runtime.store.append(large), runtime.store.append(small), return_exceptions=True)
        assert isinstance(told[0], TooLarge)
        assert str(LARGEST) in told[0].message
        assert told[1] is None
        most = LARGEST - len(large.messages[0].headers)
        await runtime.store.append(write_of(runtime, "tally:most", 1, bytes(most)))
        await relayed(runtime)
    assert by_stream(tallies.records()) == {"tally:10": [1], "tally:most": [1]}


async def test_what_the_broker_refuses_stays_in_the_outbox_and_the_rest_leaves(tallies: Tallies) -> None:
    too_large = bytes(2 * 1024**2)
    async with tallies.opened() as runtime:
        [refused] = write_of(runtime, "tally:large", 1, too_large).messages
        await put_into_outbox(runtime, refused._replace(topic=tallies.dead_letter_topic))
        async with running(runtime.relay.run()):
            for _ in range(2):
                await handled(runtime, "tally:small", add(1))

            async def small_ones_left() -> bool:
                left = await runtime.pool.fetch("SELECT key FROM outbox")
                return [row["key"] for row in left] == ["tally:large"]

            await until(small_ones_left)
            # Cancelled while it connects again, it would leave its socket behind: first it is at work.
            await runtime.pool.execute("DELETE FROM outbox WHERE key = 'tally:large'")
            await handled(runtime, "tally:small", add(1))
            await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:small": [1, 2, 3]}
    assert tallies.dead_letters() == []


async def test_more_than_a_batch_for_one_partition_leaves_in_order(tallies: Tallies) -> None:
    """A batch is at most 900 kB: what does not fit waits for the next round, and nothing passes it."""
    value = bytes(100_000)
    async with tallies.opened() as runtime:
        for version in range(1, 31):
            await runtime.store.append(write_of(runtime, "tally:a", version, value))
        await relayed(runtime)
    assert by_stream(tallies.records()) == {"tally:a": list(range(1, 31))}


async def lock_holder(runtime: Runtime) -> int | None:
    pid: int | None = await runtime.pool.fetchval(
        "SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE locktype = 'advisory' AND granted AND application_name = $1",
        f"till {runtime.service.name}",
    )
    return pid


async def test_only_one_relay_works_and_the_other_takes_over_when_it_stops(tallies: Tallies) -> None:
    async with tallies.processes(2) as (here, there), running(here.relay.run()) as [first]:
        await until(lambda: lock_holder(here))
        async with running(there.relay.run()):
            await handled(here, "tally:a", add(1))
            await until(lambda: is_empty(here))
            assert (here.relay.published, there.relay.published) == (1, 0)
            await stop(first)
            await handled(here, "tally:a", add(1))
            await until(lambda: is_empty(here))
            assert (here.relay.published, there.relay.published) == (1, 1)
    assert by_stream(tallies.records()) == {"tally:a": [1, 2]}


async def test_a_relay_whose_connection_dies_is_replaced_and_loses_nothing(tallies: Tallies) -> None:
    async with tallies.processes(2) as (here, there), running(here.relay.run(), there.relay.run()):
        for n in range(3):
            pid = await until(lambda: lock_holder(here))
            await here.pool.execute("SELECT pg_terminate_backend($1)", pid)
            for _ in range(20):
                await handled(here, f"tally:{n}", add(1, 1))
        await until(lambda: is_empty(here))
    versions = by_stream(tallies.records())
    # A batch whose delete went down with the connection is sent again: its versions come twice, in order.
    assert {stream: sorted(set(seen)) for stream, seen in versions.items()} == {
        f"tally:{n}": list(range(1, 41)) for n in range(3)
    }
    assert all(_first_seen(seen) == sorted(set(seen)) for seen in versions.values())


def _first_seen(versions: list[int]) -> list[int]:
    return list(dict.fromkeys(versions))


async def test_a_relay_that_missed_the_notice_finds_the_message_all_the_same(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        relay = Relay(runtime.pool, runtime.settings, runtime.service.name)
        async with running(relay.run()):
            await until(lambda: lock_holder(runtime))
            [message] = write_of(runtime, "tally:a", 1).messages
            await put_into_outbox(runtime, message)
            await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:a": [1]}
