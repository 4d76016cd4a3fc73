"""The relay loses nothing, keeps the order of every stream, and deletes only acknowledged rows."""

import asyncio
import random

import pytest

from shared.envelope import Message, Recorded, cloud_event_headers, millis, now, pack_headers
from shared.messaging.relay import Relay
from shared.service import Runtime
from shared.store.event_store import LARGEST_MESSAGE, TooLarge, Write, execute
from tests.integration.shared.loops import running, stop, until
from tests.integration.shared.tallies import ANN, Tallies, add, handled, relayed, stored_events
from tests.integration.shared.topics import by_stream

pytestmark = pytest.mark.anyio


def write_of(runtime: Runtime, stream_id: str, version: int, value: bytes = b"\0late") -> Write:
    """Makes what a command handler would append, for a transaction that the test ends itself."""
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
    """Inserts outbox rows without `execute`, which would refuse large ones and notify the relay."""
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
        stored = [(event.stream_id, event.version, event.value) for event in await stored_events(processes[0])]
    records = tallies.records()
    assert len(stored) == 8 * 40 * 2
    assert all(versions == list(range(1, len(versions) + 1)) for versions in by_stream(records).values())
    assert sorted(stored) == sorted(
        (r.header("ce_subject"), int(r.header("ce_streamversion")), r.value) for r in records
    )


async def test_a_published_message_equals_its_outbox_row(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(5))
        [event] = await runtime.store.history("tally:a")
        await relayed(runtime)
    [record] = tallies.records()
    assert (record.key, record.value) == (b"tally:a", event.value)
    assert list(record.headers) == cloud_event_headers(event, tallies.service.source)
    assert record.timestamp == millis(event.time)


async def test_a_transaction_that_commits_late_is_published_late_and_not_skipped(tallies: Tallies) -> None:
    async with tallies.opened() as runtime, running(runtime.relay.run()):
        async with runtime.pool.acquire() as slow, slow.transaction():
            await execute(slow, [write_of(runtime, "tally:late", 1)])
            late = await slow.fetchval("SELECT max(position) FROM outbox WHERE key = 'tally:late'")
            await handled(runtime, "tally:early", add(1))
            latest = await runtime.pool.fetchval("SELECT last_value FROM outbox_position_seq")
            await until(lambda: is_empty(runtime))
            assert by_stream(tallies.records()) == {"tally:early": [1]}
        assert late < latest, "the positions are not in the order that this test needs"
        await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:early": [1], "tally:late": [1]}


async def test_commits_in_any_order_under_a_busy_relay_lose_nothing(tallies: Tallies) -> None:
    """Every transaction holds its positions for a while before it commits, while the relay runs several rounds."""
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


async def test_an_event_too_large_for_any_broker_is_refused_and_others_are_stored(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        large, small = (write_of(runtime, f"tally:{size}", 1, bytes(size)) for size in (LARGEST_MESSAGE, 10))
        results = await asyncio.gather(runtime.store.append(large), runtime.store.append(small), return_exceptions=True)
        assert isinstance(results[0], TooLarge)
        assert str(LARGEST_MESSAGE) in results[0].message
        assert results[1] is None
        most = LARGEST_MESSAGE - len(large.messages[0].headers)
        await runtime.store.append(write_of(runtime, "tally:most", 1, bytes(most)))
        await relayed(runtime)
    assert by_stream(tallies.records()) == {"tally:10": [1], "tally:most": [1]}


async def test_a_message_that_the_broker_refuses_stays_in_the_outbox_and_others_leave(tallies: Tallies) -> None:
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
            # If it were cancelled while it reconnects, it would leave a socket open: wait until it works.
            await runtime.pool.execute("DELETE FROM outbox WHERE key = 'tally:large'")
            await handled(runtime, "tally:small", add(1))
            await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:small": [1, 2, 3]}
    assert tallies.dead_letters() == []


async def test_messages_that_fill_several_batches_of_a_partition_leave_in_order(tallies: Tallies) -> None:
    """A batch is at most 900 kB: messages that do not fit wait for the next round, and none overtakes them."""
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
    # A batch whose delete was lost with the connection is sent again: its versions come twice, in order.
    assert {stream: sorted(set(seen)) for stream, seen in versions.items()} == {
        f"tally:{n}": list(range(1, 41)) for n in range(3)
    }
    assert all(_first_seen(seen) == sorted(set(seen)) for seen in versions.values())


def _first_seen(versions: list[int]) -> list[int]:
    return list(dict.fromkeys(versions))


async def test_a_relay_that_missed_a_notification_finds_the_message_anyway(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        relay = Relay(runtime.pool, runtime.settings, runtime.service.name)
        async with running(relay.run()):
            await until(lambda: lock_holder(runtime))
            [message] = write_of(runtime, "tally:a", 1).messages
            await put_into_outbox(runtime, message)
            await until(lambda: is_empty(runtime))
    assert by_stream(tallies.records()) == {"tally:a": [1]}
