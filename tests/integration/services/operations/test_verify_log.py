"""Differences between a store and its topic, planted in a service of tallies that no other test uses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from infra.settings import Settings
from services.operations.reading.stores import open_stores
from services.operations.verify.all_checks import SERVICE_CHECKS
from services.operations.verify.checks import log
from services.operations.verify.findings import Findings
from services.operations.verify.log_comparison.fast_reader import open_fast_reader
from services.operations.verify.log_comparison.messages import Body
from services.operations.verify.log_comparison.plain_reader import open_plain_reader
from services.operations.verify.verify import CheckJob, VerifyRequest, run_job
from shared.envelope import EPOCH, Context, cloud_event_headers, millis
from shared.messaging.topic_reader import open_reader
from shared.service import Runtime
from tests.integration.shared.loops import running, until
from tests.integration.shared.tallies import Tallies, add, handled, new_tallies, relayed
from tests.integration.shared.topics import Record, create_topics, delete_topics, send

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tallies(shop: Settings) -> AsyncIterator[Tallies]:
    async with new_tallies(shop) as tallies:
        yield tallies


async def checked(tallies: Tallies, check: str = "log", of: str = "", patience: float = 5.0) -> Findings:
    name = of or (tallies.service.name if check == "log" else "")
    request = VerifyRequest(tallies.settings, lambda _: [tallies.service], None, patience, tallies.schemas)
    [found] = await run_job(request, CheckJob(check, name))
    return found


def named(findings: Findings) -> list[tuple[str, str]]:
    return [(violation.stream, violation.what) for violation in findings.violations]


@pytest.fixture(params=[open_fast_reader, open_plain_reader], ids=["fast", "plain"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks with one reader and then with the other, which must find the same."""
    monkeypatch.setitem(SERVICE_CHECKS, "log", partial(log.check, open_log_reader=request.param))


@asynccontextmanager
async def filled(tallies: Tallies) -> AsyncIterator[Runtime]:
    async with tallies.opened() as runtime:
        for n in range(3):
            await handled(runtime, f"tally:{n}", add(1, 2, 3))
        await relayed(runtime)
        yield runtime


async def test_the_fast_reader_reads_the_same_as_the_plain_one(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        for n in (0, 1, 63, 64, 8_191, 8_192):
            who = Context("a" * n, correlation_id="é" * n, causation_id="", traceparent="t" * n)
            await runtime.handler.handle(f"tally:{n}", add(*range(5)), who)
        await relayed(runtime)
        first, *_ = tallies.records()
        send(tallies.settings, tallies.topic, [first._replace(headers=()), first._replace(key=None, timestamp=1_000)])
        fast, plain = [await everything(tallies, it) for it in (open_fast_reader, open_plain_reader)]
    assert fast == plain
    stored, messages = fast
    assert (len(stored), len(messages)) == (30, 32)
    assert set(stored.values()) <= set(messages.values())


async def everything(tallies: Tallies, open_log_reader: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns what a reader finds, taken apart: events by stream and position, messages by partition and offset."""
    settings, service = tallies.settings, tallies.service
    url = settings.database_url.get_secret_value()
    async with (
        open_stores(url, {service.name: service.decider}, tallies.schemas, settings) as stores,
        open_log_reader(settings, stores[service.name], service.source) as reader,
        open_reader(settings, tallies.topic) as topic,
    ):

        def parts(body: Body) -> Any:
            value, headers = reader.contents(body)
            return body[0], value, tuple(headers)

        stored = {
            (stream, position): parts(body)
            async for chunk in reader.read_store(10**9, EPOCH)
            for stream, position, body in chunk
        }
        names, versions = ["tally:0", "tally:8192"], [1, 5]
        assert {parts(body) for _, body in (await reader.look_up(names, versions)).values()} <= set(stored.values())
        ends = {at.partition: end for at, end in (await topic.ends()).items()}
        messages: dict[Any, Any] = {}
        reached = dict.fromkeys(ends, 0)
        while left := {partition: offset for partition, offset in reached.items() if offset < ends[partition]}:
            for partition, (found, following) in (await reader.fetch(left)).items():
                messages |= {(partition, offset): (key, parts(body)) for offset, key, body in found}
                reached[partition] = following
    return stored, {place: content for place, (_, content) in messages.items()}


@pytest.mark.usefixtures("reader")
async def test_the_same_message_twice_is_no_violation(tallies: Tallies) -> None:
    async with filled(tallies):
        send(tallies.settings, tallies.topic, tallies.records())
        found = await checked(tallies)
    assert named(found) == []
    assert found.looked_at == 9
    assert found.notes == [f"9 messages of {tallies.topic} were delivered twice, with the same bytes."]


@pytest.mark.usefixtures("reader")
async def test_many_messages_that_were_never_stored_are_found_early_and_not_kept(
    tallies: Tallies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.operations.verify.log_comparison.comparison.STRAYS_KEPT", 1)
    async with filled(tallies):
        first, *_ = tallies.records()
        strangers = [first._replace(headers=(("n", b"%d" % n),)) for n in range(20)]
        send(tallies.settings, tallies.topic, [*strangers, *tallies.records()])
        found = await checked(tallies)
    assert [what for _, what in named(found)] == ["It is in the topic, and was never stored."] * 20
    assert found.notes == [f"9 messages of {tallies.topic} were delivered twice, with the same bytes."]


@pytest.mark.usefixtures("reader")
async def test_a_message_sent_again_with_other_bytes_or_to_another_partition_is_found(tallies: Tallies) -> None:
    async with filled(tallies):
        first, second, third, *_ = tallies.records()
        elsewhere = (third.partition + 1) % 3
        planted = {
            "It differs from what is stored: value.": first._replace(value=b"\0\0\0\0\1\x08"),
            "It differs from what is stored: timestamp.": first._replace(timestamp=1_000),
            "It differs from what is stored: key.": second._replace(key=b"tally:other"),
            "It differs from what is stored: names or order of headers.": second._replace(headers=second.headers[::-1]),
            "It is in the topic, and was never stored.": third._replace(headers=()),
            f"It is in partition {elsewhere}; its key belongs in {third.partition}.": third._replace(
                partition=elsewhere
            ),
        }
        send(tallies.settings, tallies.topic, planted.values())
        found = await checked(tallies)
    whats = [violation.what for violation in found.violations]
    assert set(planted) <= set(whats)
    # By chance, the changed key may belong in another partition too, and another partition may be read too early.
    incidental = ("It is in partition", "It comes before version")
    assert all(what.startswith(incidental) for what in set(whats) - set(planted))
    assert len(whats) == len(set(whats)), "each is named once"
    assert all(violation.position.startswith(f"{tallies.topic}/") for violation in found.violations)
    assert all(violation.look.startswith("till ") for violation in found.violations)


@pytest.mark.usefixtures("reader")
async def test_headers_of_any_length_are_compared(tallies: Tallies) -> None:
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
    assert named(found) == []
    assert found.looked_at == 2 * len(lengths)
    assert [what for _, what in named(differing)] == ["It differs from what is stored: traceparent."] * len(lengths)


@pytest.mark.usefixtures("reader")
async def test_versions_out_of_order_in_the_topic_are_found(tallies: Tallies) -> None:
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
    assert named(found) == [("tally:0@5", "It comes before version 4 of its stream.")]


@pytest.mark.usefixtures("reader")
async def test_an_event_in_the_outbox_is_on_its_way_and_not_lost(tallies: Tallies) -> None:
    async with filled(tallies) as runtime:
        await handled(runtime, "tally:0", add(4))
        waiting = await checked(tallies, patience=0.2)
        stuck = await checked(tallies, "flow", patience=0.2)
        await relayed(runtime)
        sent = await checked(tallies)
    assert named(waiting) == named(sent) == []
    assert waiting.notes == [f"1 events of {tallies.topic} are still in the outbox."]
    assert [stream for stream, _ in named(stuck)] == ["tally:0"]
    assert "is not emptied" in stuck.violations[0].what


async def test_a_relay_that_sends_meanwhile_causes_no_false_alarm(tallies: Tallies) -> None:
    async with filled(tallies) as runtime, running(runtime.relay.run()):

        async def go_on() -> None:
            while True:
                await handled(runtime, "tally:1", add(1))

        writing = asyncio.create_task(go_on())
        for _ in range(3):
            assert named(await checked(tallies)) == []
        writing.cancel()


@pytest.mark.usefixtures("reader")
async def test_every_event_of_a_lost_topic_is_found(tallies: Tallies) -> None:
    async with filled(tallies):
        await delete_topics(tallies.settings, [tallies.topic])
        await create_topics(tallies.settings, {tallies.topic: 3})
        found = await checked(tallies)
    assert found.total == 9


async def test_a_consumer_that_stands_still_and_dead_letters_are_found(tallies: Tallies) -> None:
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
    assert "messages behind, and makes no progress" in behind.violations[0].what
    assert found.total == 9
    assert found.violations[0].look.startswith(f"till dlq show {tallies.service.name}.dlq/0/")
    assert "RuntimeError: planted" in found.violations[0].what
