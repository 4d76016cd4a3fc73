"""A service stores the schemas it uses, so that it starts and works while the registry is down."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from infra.settings import Settings
from shared.decider import Decider
from shared.errors import OperatorError
from shared.messaging.incoming import Incoming
from shared.schemas.codec import MAGIC, PREFIX
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.registry import Registry, RegistryUnavailable
from shared.service import Runtime
from shared.store.database import Connection
from tests.integration.shared.loops import running, until
from tests.integration.shared.network import wired_registry
from tests.integration.shared.tallies import (
    ANN,
    Add,
    Tallies,
    Tally,
    add,
    added_schema,
    drop_schema,
    handled,
    register,
    relayed,
)

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Added:
    """Version 2 of the event, as the next release of the service has it."""

    amount: int
    by: str


def decide(command: Add, _tally: Tally) -> list[Added]:
    return [Added(amount, "ann") for amount in command.amounts]


def evolve(tally: Tally, event: Added) -> Tally:
    return Tally(tally.total + event.amount + (1000 if event.by == "ann" else 0))


async def next_release(tallies: Tallies) -> Tallies:
    """Returns the next release of the service, with version 2 of its event."""
    decider = Decider("tally", tallies.topic, Tally(0), decide, evolve)
    schemas = Schemas([added_schema(tallies.topic), added_schema(tallies.topic, version=2)])
    await register(tallies.settings, schemas)
    return replace(tallies, service=replace(tallies.service, decider=decider), schemas=schemas)


@asynccontextmanager
async def without_registry(settings: Settings) -> AsyncIterator[Settings]:
    async with wired_registry(settings) as (wire, through):
        await wire.cut()
        yield through


async def test_a_service_that_has_seen_its_schemas_opens_and_works_without_the_registry(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
    async with without_registry(tallies.settings) as settings:
        with pytest.raises(RegistryUnavailable):  # it is really down
            async with Registry(settings) as registry:
                await registry.lookup(tallies.schemas.all[0])
        async with tallies.opened(settings) as runtime:
            assert (await handled(runtime, "tally:a", add(2))).state == Tally(3)
            await relayed(runtime)
    assert len(tallies.records()) == 2


async def test_a_service_that_has_never_seen_its_schemas_does_not_start_without_the_registry(
    tallies: Tallies,
) -> None:
    async with without_registry(tallies.settings) as settings:
        with pytest.raises(OperatorError, match=r"schema registry at .* does not answer") as error:
            async with tallies.opened(settings):
                pass
        assert "TILL_REGISTRY_URL" in error.value.hint


async def test_a_service_with_an_unregistered_schema_does_not_start_and_names_the_remedy(
    tallies: Tallies,
) -> None:
    unheard_of = Schemas([replace(added_schema(tallies.topic), record="tests.unheard.Added")])
    with pytest.raises(OperatorError, match=r"does not have tests\.unheard\.Added version 1") as error:
        async with tallies.opened(schemas=unheard_of):
            pass
    assert "till schemas push" in error.value.hint


async def test_schemas_of_followed_topics_are_learned_at_the_start_in_case_the_registry_goes_down(
    tallies: Tallies,
) -> None:
    topic = f"counts.{tallies.topic}"
    fields = [{"name": "pieces", "type": "long"}]
    definition = {"type": "record", "name": "Counted", "namespace": "tests.count", "fields": fields}
    counted = EventSchema("count", "tests.count.Counted", 1, topic, definition)
    schemas = Schemas([*tallies.schemas.all, counted])
    ids = await register(tallies.settings, schemas)
    follower = replace(tallies, service=replace(tallies.service, follows=[topic]))
    async with wired_registry(tallies.settings) as (wire, through), follower.opened(through, schemas) as runtime:
        await wire.cut()
        value = PREFIX.pack(MAGIC, ids["tests.count.Counted.v1"]) + b"\x0e"
        assert await runtime.decoder.decode(value) == {"pieces": 7}


async def test_a_message_with_a_new_schema_id_waits_while_the_registry_is_down(
    tallies: Tallies, caplog: pytest.LogCaptureFixture
) -> None:
    """The message must not become a dead letter: it is valid, and can be read once the registry is back."""
    seen: list[object] = []

    async def note(_connection: Connection, messages: Sequence[Incoming]) -> None:
        seen.extend(message.data for message in messages)

    following = tallies.following(note)
    async with wired_registry(tallies.settings) as (wire, settings), following.opened(settings) as runtime:
        async with (await next_release(tallies)).opened() as newer:
            await newer.handler.handle("tally:a", add(7), ANN)
            await relayed(newer)
            # The newer release has stored its schema in the table that both share. Without it, the registry is needed.
            await newer.pool.execute("DELETE FROM schemas WHERE schema_text LIKE '%\"by\"%'")
        await wire.cut()
        async with running(runtime.consumers[0].run()):

            async def tried(times: int = 2) -> bool:
                return sum("consumer interrupted" in r.message for r in caplog.records) >= times

            await until(tried)
            assert await offset(runtime) == 0
            assert await runtime.pool.fetchval("SELECT count(*) FROM outbox") == 0, "it became a dead letter"
            await wire.mend()

            async def done() -> bool:
                return await offset(runtime) == 1

            await until(done)
    assert [type(event).__module__ for event in seen] == ["tests.integration.shared.tallies"], (
        "read as this release has it"
    )


async def test_a_schema_that_another_process_of_the_service_has_stored_needs_no_registry(tallies: Tallies) -> None:
    async with wired_registry(tallies.settings) as (wire, settings), tallies.opened(settings) as older:
        async with (await next_release(tallies)).opened() as newer:
            await newer.handler.handle("tally:a", add(7), ANN)
            [value] = await newer.store.load("tally:a")
        await wire.cut()
        assert (await older.decoder.decode(value)).amount == 7


async def offset(runtime: Runtime) -> int:
    return int(await runtime.pool.fetchval("SELECT coalesce(sum(next_offset), 0) FROM offsets"))


async def test_events_of_the_previous_release_are_read_by_this_one(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
    async with (await next_release(tallies)).opened() as newer:
        await newer.handler.handle("tally:a", add(2), ANN)
        assert (await newer.handler.state("tally:a")).state == Tally(1003), "1 by nobody, 2 by ann"


async def test_while_two_releases_run_side_by_side_the_older_reads_what_the_newer_writes(tallies: Tallies) -> None:
    async with tallies.opened() as older, (await next_release(tallies)).opened() as newer:
        await handled(older, "tally:a", add(1))
        await newer.handler.handle("tally:a", add(2), ANN)
        assert (await older.handler.state("tally:a")).state == Tally(3)
        assert (await handled(older, "tally:a", add(3))).state == Tally(6)


async def test_a_store_refilled_with_events_of_older_releases_is_read_as_before(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        await relayed(runtime)
    newer = await next_release(tallies)
    await drop_schema(tallies.settings, tallies.service.name)
    async with newer.opened() as runtime:
        assert (await runtime.handler.state("tally:a")).state == Tally(1)


async def test_two_processes_that_learn_a_schema_id_at_once_store_it_once(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1))
        [value] = await runtime.store.load("tally:a")
    await drop_schema(tallies.settings, tallies.service.name)
    async with tallies.processes(2) as processes:
        await asyncio.gather(*(process.decoder.decode(value) for process in processes))
        remembered = await processes[0].pool.fetch("SELECT subject FROM schemas")
        assert [row[0] for row in remembered] == [added_schema(tallies.topic).subject]
