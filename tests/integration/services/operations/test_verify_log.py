"""What can be wrong between a store and its topic, planted in a service of tallies that nobody else uses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.replay.checks.findings import Findings
from services.replay.verify import Ask, Job, run_job
from shared.envelope import Context, cloud_event_headers, millis
from shared.service import Runtime
from shared.settings import Settings
from tests.integration.kit import (
    Record,
    Tallies,
    add,
    create_topics,
    delete_topics,
    handled,
    new_tallies,
    relayed,
    running,
    send,
    until,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tallies(shop: Settings) -> AsyncIterator[Tallies]:
    async with new_tallies(shop) as tallies:
        yield tallies


async def checked(tallies: Tallies, check: str = "log", of: str = "", patience: float = 5.0) -> Findings:
    name = of or (tallies.service.name if check == "log" else "")
    ask = Ask(tallies.settings, lambda _: [tallies.service], None, patience, tallies.schemas)
    [found] = await run_job(ask, Job(check, name))
    return found


def told(findings: Findings) -> list[tuple[str, str]]:
    return [(violation.stream, violation.what) for violation in findings.violations]


@asynccontextmanager
async def filled(tallies: Tallies) -> AsyncIterator[Runtime]:
    async with tallies.opened() as runtime:
        for n in range(3):
            await handled(runtime, f"tally:{n}", add(1, 2, 3))
        await relayed(runtime)
        yield runtime


async def test_the_same_message_twice_is_no_harm(tallies: Tallies) -> None:
    async with filled(tallies):
        send(tallies.settings, tallies.topic, tallies.records())
        found = await checked(tallies)
    assert told(found) == []
    assert found.looked_at == 9
    assert found.notes == [f"9 messages of {tallies.topic} came twice, byte for byte the same."]


async def test_what_was_never_stored_is_named_on_the_way_and_not_kept(
    tallies: Tallies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.replay.checks.log.STRAYS", 1)
    async with filled(tallies):
        first, *_ = tallies.records()
        strangers = [first._replace(headers=(("n", b"%d" % n),)) for n in range(20)]
        send(tallies.settings, tallies.topic, [*strangers, *tallies.records()])
        found = await checked(tallies)
    assert [what for _, what in told(found)] == ["It is in the topic, and was never stored."] * 20
    assert found.notes == [f"9 messages of {tallies.topic} came twice, byte for byte the same."]


async def test_a_message_twice_with_other_bytes_or_in_another_place(tallies: Tallies) -> None:
    async with filled(tallies):
        first, second, third, *_ = tallies.records()
        elsewhere = (third.partition + 1) % 3
        planted = {
            "It is not what is stored: value.": first._replace(value=b"\0\0\0\0\1\x08"),
            "It is not what is stored: timestamp.": first._replace(timestamp=1_000),
            "It is not what is stored: key.": second._replace(key=b"tally:other"),
            "It is not what is stored: names or order of headers.": second._replace(headers=second.headers[::-1]),
            "It is in the topic, and was never stored.": third._replace(headers=()),
            f"It is in partition {elsewhere}; its key belongs into {third.partition}.": third._replace(
                partition=elsewhere
            ),
        }
        send(tallies.settings, tallies.topic, planted.values())
        found = await checked(tallies)
    whats = [violation.what for violation in found.violations]
    assert set(planted) <= set(whats)
    # Where they happen to lie, the changed key may belong elsewhere too, and what is elsewhere be read too early.
    incidental = ("It is in partition", "It comes before version")
    assert all(what.startswith(incidental) for what in set(whats) - set(planted))
    assert len(whats) == len(set(whats)), "each is named once"
    assert all(violation.position.startswith(f"{tallies.topic}/") for violation in found.violations)
    assert all(violation.look.startswith("till ") for violation in found.violations)


async def test_headers_of_any_length_are_what_the_store_says_of_them(tallies: Tallies) -> None:
    lengths = [0, 1, 63, 64, 8_191, 8_192, 20_000]
    async with tallies.opened() as runtime:
        for n in lengths:
            who = Context("a" * n, correlation_id="é" * (n // 2), causation_id="c", traceparent="t" * n)
            await runtime.handler.handle(f"tally:{n}", add(1, 2), who)
        await relayed(runtime)
        found = await checked(tallies)
        firsts = [record for record in tallies.records() if record.header("ce_streamversion") == "1"]
        others = [first._replace(headers=(*first.headers[:-1], ("traceparent", b"?"))) for first in firsts]
        send(tallies.settings, tallies.topic, others)
        differing = await checked(tallies)
    assert told(found) == []
    assert found.looked_at == 2 * len(lengths)
    assert [what for _, what in told(differing)] == ["It is not what is stored: traceparent."] * len(lengths)


async def test_a_stream_whose_versions_come_out_of_order(tallies: Tallies) -> None:
    async with filled(tallies) as runtime:
        # Two are published by hand, the wrong way round, and then struck from the outbox.
        await handled(runtime, "tally:0", add(4, 5))
        pattern = next(record for record in tallies.records() if record.key == b"tally:0")
        late = await runtime.store.history("tally:0", after=3)
        records = [
            Record(
                pattern.partition,
                0,
                b"tally:0",
                event.value,
                tuple(cloud_event_headers(event, tallies.service.source)),
                millis(event.time),
            )
            for event in reversed(late)
        ]
        send(tallies.settings, tallies.topic, records)
        await runtime.pool.execute("DELETE FROM outbox")
        found = await checked(tallies)
    assert told(found) == [("tally:0@5", "It comes before version 4 of its stream.")]


async def test_what_waits_in_the_outbox_is_on_its_way_and_not_lost(tallies: Tallies) -> None:
    async with filled(tallies) as runtime:
        await handled(runtime, "tally:0", add(4))
        waiting = await checked(tallies, patience=0.2)
        stuck = await checked(tallies, "flow", patience=0.2)
        await relayed(runtime)
        sent = await checked(tallies)
    assert told(waiting) == told(sent) == []
    assert waiting.notes == [f"1 events of {tallies.topic} are in the outbox still."]
    assert [stream for stream, _ in told(stuck)] == ["tally:0"]
    assert "is not emptied" in stuck.violations[0].what


async def test_a_relay_that_sends_while_we_look_makes_no_difference(tallies: Tallies) -> None:
    async with filled(tallies) as runtime, running(runtime.relay.run()):

        async def go_on() -> None:
            while True:
                await handled(runtime, "tally:1", add(1))

        writing = asyncio.create_task(go_on())
        for _ in range(3):
            assert told(await checked(tallies)) == []
        writing.cancel()


async def test_a_topic_that_was_lost_is_missed_event_by_event(tallies: Tallies) -> None:
    async with filled(tallies):
        await delete_topics(tallies.settings, [tallies.topic])
        await create_topics(tallies.settings, {tallies.topic: 3})
        found = await checked(tallies)
    assert found.total == 9


async def test_a_consumer_that_stands_still_and_a_letter_that_nobody_settled(tallies: Tallies) -> None:
    async def refuse(*_: object) -> None:
        raise RuntimeError("planted")

    following = tallies.following(refuse)
    async with filled(following) as runtime:
        behind = await checked(following, "flow", patience=0.2)
        [consumer] = runtime.consumers
        async with running(consumer.run()):

            async def letters() -> bool:
                return bool(await runtime.pool.fetchval("SELECT count(*) = 9 FROM outbox"))

            await until(letters)
        await relayed(runtime)
        found = await checked(following, "flow", patience=2)
    assert {violation.position.rpartition("/")[0] for violation in behind.violations} <= {
        f"{tallies.topic}/{partition}" for partition in range(3)
    }
    assert "messages behind, and does not move on" in behind.violations[0].what
    assert found.total == 9
    assert found.violations[0].look.startswith(f"till dlq show {tallies.service.name}.dlq/0/")
    assert "RuntimeError: planted" in found.violations[0].what
