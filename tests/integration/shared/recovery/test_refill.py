"""A lost store is refilled from its topic, and a lost topic republished from its store, byte for byte."""

import asyncio
from typing import Any

import pytest

from shared.envelope import Context
from shared.errors import OperatorError
from shared.messaging.relay import publish
from shared.recovery.refill import refill_if_empty
from shared.recovery.republish import republish
from shared.service import Runtime
from shared.store.event_store import execute
from tests.integration.shared.loops import PATIENCE
from tests.integration.shared.messaging.test_relay import write_of
from tests.integration.shared.tallies import Tallies, Tally, add, drop_schema, handled, relayed, stored_events
from tests.integration.shared.topics import by_stream, create_topics, delete_topics, send

pytestmark = pytest.mark.anyio

CONTEXTS = [
    Context("customer:ann", "correlation-1", "cause-1", "00-" + "a" * 32 + "-" + "b" * 16 + "-01"),
    Context("customer:Änne ☕", "correlation-2"),
    Context("system:deadline", "correlation-3", traceparent=""),
]


async def everything_stored(runtime: Runtime) -> list[tuple[Any, ...]]:
    """Returns every column of the events except the position."""
    rows = await runtime.pool.fetch("SELECT * FROM events ORDER BY stream_id, version")
    assert rows, "an empty store equals anything"
    return [tuple(value for name, value in row.items() if name != "position") for row in rows]


async def fill(runtime: Runtime, streams: int = 7) -> None:
    for n in range(streams):
        for context in CONTEXTS:
            await runtime.handler.handle(f"tally:{n}", add(n, -n, 1), context)


async def lose_topic(tallies: Tallies) -> None:
    await delete_topics(tallies.settings, [tallies.topic])
    await create_topics(tallies.settings, {tallies.topic: 3})


def republished(runtime: Runtime) -> Any:
    service = runtime.service
    return republish(runtime.pool, runtime.settings, service.name, service.decider.topic, service.source)


async def test_a_service_that_lost_its_database_refills_it_from_its_topic(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await fill(runtime)
        await relayed(runtime)
        before = await everything_stored(runtime)
    await drop_schema(tallies.settings, tallies.service.name)
    async with tallies.opened() as runtime:
        assert await everything_stored(runtime) == before
        assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0, "they are already in the topic"
        versions: dict[str, list[int]] = {}
        for event in await stored_events(runtime):
            versions.setdefault(event.stream_id, []).append(event.version)
        assert all(seen == list(range(1, 10)) for seen in versions.values()), "positions do not follow versions"
        assert (await handled(runtime, "tally:3", add(1))).version == 10
        await relayed(runtime)
    assert by_stream(tallies.records())["tally:3"] == list(range(1, 11))


async def test_a_store_that_has_events_is_not_refilled(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1, 2))
        await relayed(runtime)
        await runtime.pool.execute("DELETE FROM events WHERE version = 2")
        assert await refill_if_empty(runtime.pool, runtime.settings, tallies.service.name, tallies.topic) == 0
        assert len(await everything_stored(runtime)) == 1


async def test_two_processes_that_start_at_once_refill_once(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await fill(runtime)
        await relayed(runtime)
        before = await everything_stored(runtime)
        await runtime.pool.execute("TRUNCATE events")
        filled = await asyncio.gather(
            *(refill_if_empty(runtime.pool, runtime.settings, tallies.service.name, tallies.topic) for _ in range(3))
        )
        assert sorted(filled) == [0, 0, len(before)]
        assert await everything_stored(runtime) == before


async def test_a_message_that_is_twice_in_the_topic_is_refilled_once(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await fill(runtime)
        await relayed(runtime)
        before = await everything_stored(runtime)
        send(tallies.settings, tallies.topic, tallies.records())
        await runtime.pool.execute("TRUNCATE events")
        await refill_if_empty(runtime.pool, runtime.settings, tallies.service.name, tallies.topic)
        assert await everything_stored(runtime) == before


async def test_the_first_of_two_different_events_with_one_version_is_refilled_and_the_other_logged(
    tallies: Tallies, caplog: pytest.LogCaptureFixture
) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        before = await everything_stored(runtime)
        [record] = tallies.records()
        send(tallies.settings, tallies.topic, [record._replace(value=record.value and record.value[:5] + b"\x08")])
        await runtime.pool.execute("TRUNCATE events")
        await refill_if_empty(runtime.pool, runtime.settings, tallies.service.name, tallies.topic)
        assert await everything_stored(runtime) == before
        assert "two different events with one version" in caplog.text


async def test_foreign_messages_in_the_topic_are_not_refilled(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1, 2))
        await relayed(runtime)
        before = await everything_stored(runtime)
        record = tallies.records()[0]
        headers = dict(record.headers)
        spoilt = [
            {"ce_streamversion": b"three"},
            {"ce_streamversion": b"99999999999"},
            {"ce_streamversion": b"0"},
            {"ce_id": b"no uuid"},
            {"ce_time": b"noon"},
            {"ce_subject": b"tally:\0"},
            {"ce_actor": b"\xff"},
        ]
        garbage = [record._replace(headers=tuple((headers | change).items())) for change in spoilt]
        garbage += [record._replace(headers=()), record._replace(value=None), record._replace(value=b"hello")]
        send(tallies.settings, tallies.topic, garbage)
        await runtime.pool.execute("TRUNCATE events")
        await refill_if_empty(runtime.pool, runtime.settings, tallies.service.name, tallies.topic)
        assert await everything_stored(runtime) == before


async def test_a_topic_that_lacks_a_version_refills_nothing(tallies: Tallies) -> None:
    """A service that started would decide on states that never existed."""
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1, 2, 3))
        await relayed(runtime)
        records = tallies.records()
    await lose_topic(tallies)
    send(tallies.settings, tallies.topic, [records[0], records[2]])
    await drop_schema(tallies.settings, tallies.service.name)
    with pytest.raises(OperatorError, match="it lacks versions of tally:a"):
        async with tallies.opened():
            pass


async def test_a_lost_topic_is_republished_byte_for_byte(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await fill(runtime)
        await relayed(runtime)
        before = tallies.records()
        await lose_topic(tallies)
        assert tallies.records() == []
        assert await republished(runtime) == len(before)
        after = tallies.records()
    assert by_stream(after) == by_stream(before)
    assert sorted(record.content for record in after) == sorted(record.content for record in before)
    assert {record.key: record.partition for record in after} == {record.key: record.partition for record in before}


async def test_a_topic_that_is_not_empty_is_not_republished(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        with pytest.raises(OperatorError, match="is not empty"):
            await republished(runtime)
    assert by_stream(tallies.records()) == {"tally:a": [1]}


async def test_republishing_includes_events_that_wait_in_the_outbox(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
        await handled(runtime, "tally:a", add(2))
        await lose_topic(tallies)
        await republished(runtime)
        await relayed(runtime)
    assert by_stream(tallies.records()) == {"tally:a": [1, 2]}


async def test_events_appended_during_republishing_overtake_no_earlier_version(
    tallies: Tallies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 1 has a low position and commits after the republisher has passed it; version 2 must not overtake it."""
    monkeypatch.setattr("shared.recovery.republish.EVENTS_PER_QUERY", 1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def held(*what: Any) -> Any:
        result = await publish(*what)
        begun.set()
        await go_on.wait()
        return result

    monkeypatch.setattr("shared.recovery.republish.publish", held)
    async with tallies.opened() as runtime, runtime.pool.acquire() as slow:
        async with slow.transaction():
            await execute(slow, [write_of(runtime, "tally:late", 1)])
            await fill(runtime, streams=15)
            again = asyncio.create_task(republished(runtime))
            await asyncio.wait_for(begun.wait(), PATIENCE)
        await execute(slow, [write_of(runtime, "tally:late", 2)])
        go_on.set()
        await again
        await relayed(runtime)
    assert by_stream(tallies.records()) == {f"tally:{n}": list(range(1, 10)) for n in range(15)} | {
        "tally:late": [1, 2]
    }


async def test_a_topic_and_then_a_store_lost_one_after_the_other_are_restored_unchanged(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await fill(runtime)
        await relayed(runtime)
        stored, published = await everything_stored(runtime), tallies.records()
    await drop_schema(tallies.settings, tallies.service.name)
    async with tallies.opened() as runtime:
        await lose_topic(tallies)
        await republished(runtime)
        assert await everything_stored(runtime) == stored
        assert (await runtime.handler.state("tally:1")).state == Tally(3)
    assert sorted(r.content for r in tallies.records()) == sorted(r.content for r in published)


async def test_a_service_with_an_empty_store_does_not_start_without_its_topic(tallies: Tallies) -> None:
    await delete_topics(tallies.settings, [tallies.topic])
    with pytest.raises(OperatorError, match="does not exist"):
        async with tallies.opened():
            pass
    await create_topics(tallies.settings, {tallies.topic: 3})
