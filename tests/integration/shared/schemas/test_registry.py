"""The contract against a real registry: what it accepts and refuses, and how services start and read with it."""

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import httpx
import pytest
from fastavro import schemaless_writer
from uuid_utils import uuid7

from infra.settings import Settings
from schemas.upcasters import Upcaster
from shared.envelope import Message, Recorded, cloud_event_headers, now, pack_headers
from shared.errors import OperatorError
from shared.messaging.incoming import Incoming
from shared.schemas.codec import MAGIC, PREFIX, NotRegistered, Undecodable
from shared.schemas.contract.compatibility import Side, incompatibilities
from shared.schemas.contract.event_schemas import EventSchema, Schemas, load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import COMPATIBILITY, Registry, SchemaRefused
from shared.schemas.registry_drift import compare_with_registry
from shared.service import Runtime
from shared.store.database import Connection
from shared.store.event_store import Write
from tests.integration.shared.loops import running, until
from tests.integration.shared.network import wired_registry
from tests.integration.shared.tallies import Added, Tallies, Tally, add, added_schema, handled, register, relayed
from tests.till import Till
from tests.unit.shared.schemas.contract.schema_folder import AT, NOTE, SKU
from tests.unit.shared.schemas.contract.schema_pairs import ALLOWED, AMBIGUOUS, REFUSED, paid

pytestmark = pytest.mark.anyio


@pytest.fixture
def topic() -> str:
    return f"paper_{uuid7().hex[-12:]}"


def versions(topic: str, *definitions: dict[str, Any]) -> Schemas:
    return Schemas([schema_of(topic, n, definition) for n, definition in enumerate(definitions, 1)])


def schema_of(topic: str, version: int, definition: dict[str, Any]) -> EventSchema:
    return EventSchema("paper", f"{definition['namespace']}.{definition['name']}", version, topic, definition)


async def test_pushed_schemas_are_registered_under_their_subjects_and_pushing_again_changes_nothing(
    stack: Settings,
) -> None:
    schemas = load_schemas()
    async with Registry(stack) as registry:
        first, second = await push(registry, schemas), await push(registry, schemas)
        found = await compare_with_registry(registry, schemas)
    async with httpx.AsyncClient(base_url=stack.registry_url) as http:
        subjects = (await http.get("/subjects")).json()
    assert first == second
    assert len(first) == len(schemas.all)
    assert found.problems == []
    assert sorted(found.ids.values()) == sorted(first.values())
    assert {schema.subject for schema in schemas.all} <= set(subjects)


async def test_the_registry_is_set_to_full_transitive(stack: Settings) -> None:
    async with Registry(stack) as registry:
        await registry.require_compatibility()
        assert await registry.compatibility() == COMPATIBILITY


async def test_an_incompatible_schema_is_refused_with_an_explanation(stack: Settings, topic: str) -> None:
    async with Registry(stack) as registry:
        with pytest.raises(SchemaRefused) as refused:
            await push(registry, versions(topic, paid(SKU, AT), paid(SKU)))
        assert len(await registry.versions(f"{topic}-tests.paper.Paid")) == 1
    assert "paper/Paid.v2" in refused.value.message
    assert "field at: it is gone in v2" in refused.value.message
    assert "docs/adr/0010" in refused.value.hint


async def test_a_schema_that_is_incompatible_with_the_oldest_version_only_is_refused(
    stack: Settings, topic: str
) -> None:
    back_as_a_number = {**NOTE, "type": "long", "default": 0}
    async with Registry(stack) as registry:
        with pytest.raises(SchemaRefused, match="with version 1 in the registry: field note"):
            await push(registry, versions(topic, paid(SKU, NOTE), paid(SKU), paid(SKU, back_as_a_number)))


async def test_a_text_that_is_no_schema_is_refused_by_the_registry(stack: Settings, topic: str) -> None:
    nonsense = EventSchema("paper", "tests.paper.Paid", 1, topic, {"type": "recor"})
    async with Registry(stack) as registry:
        with pytest.raises(SchemaRefused, match="refuses"):
            await registry.register(nonsense)


async def test_our_compatibility_check_and_the_registry_give_the_same_verdicts(stack: Settings, topic: str) -> None:
    """Compares all pairs of the unit tests. We are stricter only by our own two rules."""
    pairs = [*ALLOWED, *((old, new) for old, new, _, _ in REFUSED)]
    async with Registry(stack) as registry:
        for n, (old, new) in enumerate(pairs):
            await registry.register(_named(topic, n, old))
            ours = not incompatibilities(Side.parse("v1", old), Side.parse("v2", new))
            assert await registry.accepts(_named(topic, n, new)) == ours, (old, new)
        for n, (old, new, _, _) in enumerate(AMBIGUOUS, len(pairs)):
            await registry.register(_named(topic, n, old))
            assert await registry.accepts(_named(topic, n, new))


def _named(topic: str, n: int, definition: dict[str, Any]) -> EventSchema:
    """Gives the definition a subject of its own, whatever its record is called."""
    return EventSchema("paper", "tests.paper.Paid", 1, f"{topic}.{n}", definition)


async def test_a_new_schema_version_is_checked_before_it_is_pushed(stack: Settings, topic: str) -> None:
    async with Registry(stack) as registry:
        await push(registry, versions(topic, paid(SKU)))
        fine = await compare_with_registry(registry, versions(topic, paid(SKU), paid(SKU, NOTE)))
        wrong = await compare_with_registry(registry, versions(topic, paid(SKU), paid(SKU, AT)))
    assert fine.problems == []
    assert fine.ids.keys() == {"paper/Paid.v1"}
    assert [problem.where for problem in wrong.problems] == ["paper/Paid.v2"]
    assert "field at: it is new in v2 and has no default" in wrong.problems[0].what


async def test_a_schema_file_changed_after_its_registration_is_detected(stack: Settings, topic: str) -> None:
    async with Registry(stack) as registry:
        await push(registry, versions(topic, paid(SKU)))
        [problem] = (
            await compare_with_registry(registry, versions(topic, paid({**SKU, "doc": "Other words."})))
        ).problems
    assert problem.what == f"version 1 of {topic}-tests.paper.Paid in the registry is not in schemas/."


async def test_a_service_does_not_start_with_a_schema_that_is_not_registered(tallies: Tallies) -> None:
    both = Schemas([added_schema(tallies.topic), added_schema(tallies.topic, version=2)])
    with pytest.raises(OperatorError, match=r"does not have tests\.tally\.Added version 2") as refused:
        async with tallies.opened(schemas=both):
            pytest.fail("the service started")
    assert refused.value.hint == "Register it with: till schemas push"
    await register(tallies.settings, both)
    async with tallies.opened(schemas=both):
        pass


async def test_a_service_does_not_start_with_an_event_that_has_no_schema(tallies: Tallies) -> None:
    with pytest.raises(OperatorError, match="Added has no schema for"):
        async with tallies.opened(schemas=Schemas([])):
            pytest.fail("the service started")


class Invented(Added):
    """An event that is not registered."""


async def test_an_event_whose_schema_is_not_registered_cannot_be_written(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        runtime.handler.decider = replace(runtime.handler.decider, decide=lambda _command, _state: [Invented(1)])
        with pytest.raises(NotRegistered, match="Invented has no schema id"):
            await handled(runtime, "tally:a", add(1))
        assert await runtime.store.history("tally:a") == []
    assert tallies.records() == []


async def test_a_service_that_has_stored_its_schemas_starts_without_the_registry(tallies: Tallies) -> None:
    both = Schemas([added_schema(tallies.topic), added_schema(tallies.topic, version=2)])
    await register(tallies.settings, both)
    async with tallies.opened(schemas=both), wired_registry(tallies.settings) as (wire, settings):
        await wire.cut()
        async with tallies.opened(settings, both) as runtime:
            assert (await handled(runtime, "tally:a", add(3))).state == Tally(3)


async def test_bytes_whose_schema_is_no_record_are_undecodable(tallies: Tallies, topic: str) -> None:
    async with Registry(tallies.settings) as registry:
        schema_id = await registry.register(EventSchema("paper", "text", 1, topic, {"type": "string"}))
    async with tallies.opened() as runtime:
        with pytest.raises(Undecodable, match=f"schema id {schema_id} cannot be used"):
            await runtime.decoder.decode(PREFIX.pack(MAGIC, schema_id) + b"\x02a")


BUMPED = {
    "type": "record",
    "name": "Bumped",
    "namespace": "tests.tally",
    "fields": [{"name": "times", "type": "int"}],
}


@pytest.fixture
async def old_shop(tallies: Tallies) -> Tallies:
    """A service with a history: it wrote Bumped, then version 1 of Added, and writes version 2 today."""
    bumped = EventSchema("tally", "tests.tally.Bumped", 1, tallies.topic, BUMPED)
    added = [added_schema(tallies.topic), added_schema(tallies.topic, version=2)]
    upcasters = {"tests.tally.Bumped": Upcaster("tests.tally.Added", lambda old: {"amount": old["times"], "by": "?"})}
    schemas = Schemas([bumped, *added], upcasters)
    await register(tallies.settings, schemas)
    return replace(tallies, schemas=schemas)


async def write_history(shop: Tallies, runtime: Runtime) -> None:
    """Writes three events, each as another release of the code wrote it."""
    bumped, first, second = shop.schemas.all
    values: list[tuple[EventSchema, dict[str, Any]]] = [
        (bumped, {"times": 1}),
        (first, {"amount": 20}),
        (second, {"amount": 300, "by": "ann"}),
    ]
    async with Registry(shop.settings) as registry:
        for version, (schema, value) in enumerate(values, 1):
            schema_id = await registry.lookup(schema)
            assert schema_id is not None
            out = BytesIO(PREFIX.pack(MAGIC, schema_id))
            out.seek(PREFIX.size)
            schemaless_writer(out, schema.parsed, value)
            event_id = f"00000000-0000-7000-8000-{version:012}"
            event = Recorded("tally:a", version, event_id, schema.type, now(), "", "", "ann", "", out.getvalue())
            headers = pack_headers(cloud_event_headers(event, shop.service.source))
            message = Message(shop.topic, event.stream_id, event.value, headers, event.time)
            await runtime.store.append(Write([event], [message]))


async def test_a_stream_with_events_of_every_version_is_folded_by_todays_code(old_shop: Tallies) -> None:
    async with old_shop.opened() as runtime:
        await write_history(old_shop, runtime)
        assert (await runtime.handler.state("tally:a")).state == Tally(321)
        assert (await handled(runtime, "tally:a", add(4000))).state == Tally(4321)


async def test_a_service_that_lost_its_schema_table_reads_events_of_every_version(old_shop: Tallies) -> None:
    async with old_shop.opened() as runtime:
        await write_history(old_shop, runtime)
        await runtime.pool.execute("DELETE FROM schemas")
    async with old_shop.opened() as runtime:
        assert (await runtime.handler.state("tally:a")).state == Tally(321)


async def test_a_topic_with_events_of_every_version_is_read_by_todays_code_and_not_rewritten(old_shop: Tallies) -> None:
    seen: list[Incoming] = []

    async def apply(_: Connection, messages: Sequence[Incoming]) -> None:
        seen.extend(messages)

    async def all_seen() -> bool:
        return len(seen) == 3

    async with old_shop.following(apply).opened() as runtime:
        await write_history(old_shop, runtime)
        stored = [event.value for event in await runtime.store.history("tally:a")]
        await relayed(runtime)
        async with running(runtime.consumers[0].run()):
            await until(all_seen)
    assert [message.data for message in seen] == [Added(1), Added(20), Added(300)]
    assert {message.type for message in seen} == {"Added"}
    assert [record.value for record in old_shop.records()] == stored
    assert [record.header("ce_type") for record in old_shop.records()] == ["Bumped", "Added", "Added"]
    assert old_shop.dead_letters() == []


async def test_till_schemas_checks_lists_and_pushes(stack_environment: dict[str, str], stack: Settings) -> None:
    till = Till(stack_environment)
    assert till("schemas", "push").code == 0
    checked = till("schemas", "check", "--json")
    assert (checked.code, checked.document["ok"], checked.document["registry_asked"]) == (0, True, True)
    listed = {(s["record"], s["version"]): s for s in till("schemas", "list", "--json").document}
    retired = listed["tillroll.stock.StockAdjusted", 1]
    assert retired["id"] > 0
    assert retired["retired_into"] == "tillroll.stock.StockCorrected"
    assert retired["subject"] == "stock.events-tillroll.stock.StockAdjusted"


async def test_till_schemas_reports_a_registry_that_does_not_answer(stack_environment: dict[str, str]) -> None:
    away = {"TILL_REGISTRY_URL": "http://127.0.0.1:9"}
    till = Till(stack_environment)
    checked = till("schemas", "check", **away)
    assert checked.code == 1
    assert "does not answer" in checked.err
    assert "--offline" in checked.err
    assert till("schemas", "check", "--offline", **away).code == 0
    listed = till("schemas", "list", **away)
    assert listed.code == 0
    assert "Ids are not shown" in listed.err
