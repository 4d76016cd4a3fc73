"""A rehearsal shows what a retry of a dead letter would do, and changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from sqlalchemy.schema import CreateTable

from shared.messaging.incoming import Incoming
from shared.messaging.reactions import Reaction
from shared.recovery.dead_letters import Letter
from shared.recovery.rehearsal import rehearse
from shared.recovery.retry import retry, running_background_work
from shared.recovery.settlements import read_settlements
from shared.service import Background
from shared.store.database import Connection
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
from tests.integration.shared.tallies import Add, Tallies, add, handled, relayed
from tests.integration.shared.tally_view import VIEW

pytestmark = pytest.mark.anyio


async def test_a_rehearsal_of_a_retry_shows_the_rows_and_changes_nothing(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with repaired(tallies).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert plan.rows == {"effects": [{"stream_id": "tally:a", "version": 1, "amount": POISON}]}
        assert (plan.error, plan.commands, plan.events) == ("", [], [])
        assert (await effects(runtime), await read_settlements(runtime.pool)) == ([], {})


async def test_a_rehearsal_shows_only_what_the_retry_would_write(tallies: Tallies) -> None:
    one, other = await die(tallies, "tally:a", "tally:b")
    async with repaired(tallies).opened() as runtime:
        await retry(runtime, other, OLGA)
        plan = await rehearse(runtime, one)
        assert [row["stream_id"] for row in plan.rows["effects"]] == [one.header("ce_subject")]


async def test_a_rehearsal_reports_that_the_retry_would_fail_again_and_why(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        assert (await rehearse(runtime, letter)).error == f"RuntimeError: cannot apply {POISON}"
        assert await effects(runtime) == []


async def test_a_retry_does_not_change_a_row_that_has_a_later_version(tallies: Tallies) -> None:
    async def view_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
        if any(message.data.amount == POISON for message in messages):
            raise RuntimeError(f"cannot apply {POISON}")
        await VIEW.apply(connection, messages)

    async with tallies.following(view_but_choke).opened() as runtime:
        await runtime.pool.execute(str(CreateTable(VIEW.declaration)))
        await handled(runtime, "tally:a", add(POISON, 1))
        await relayed(runtime)
        await consumed(runtime, 2)
    [letter] = await all_letters(tallies)
    async with tallies.following(VIEW.apply).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert (plan.error, plan.events, plan.rows) == ("", [], {})
        assert await retry(runtime, letter, OLGA) is None
        rows = await runtime.pool.fetch("SELECT stream_id, total, version FROM tallies")
        assert [tuple(row) for row in rows] == [("tally:a", 1, 2)]


def reacting(tallies: Tallies, limit: int, ready: Callable[[], Awaitable[None]] | None = None) -> Tallies:
    """Makes a service in which every tally has a copy, whose total may be limited."""

    def copy(message: Incoming, _at: int) -> list[tuple[str, Add]]:
        if message.stream_id.startswith("tally:copy-of-"):
            return []
        return [(message.stream_id.replace("tally:", "tally:copy-of-"), add(message.data.amount, limit=limit))]

    reaction = Reaction("copies", [tallies.topic], copy, ready)
    return replace(tallies, service=replace(tallies.service, reactions=[reaction]))


async def refused_letter(tallies: Tallies) -> Letter:
    async with reacting(tallies, limit=10).opened() as runtime:
        await handled(runtime, "tally:a", add(11))
        await relayed(runtime)
        await consumed(runtime, 1)
    [letter] = await all_letters(tallies)
    assert letter.reason.startswith("Refused: 0 and 11 are more than 10")
    return letter


async def test_a_reaction_is_rehearsed_with_its_commands_and_events_and_then_retried_once(tallies: Tallies) -> None:
    letter = await refused_letter(tallies)
    async with reacting(tallies, limit=100).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert plan.commands == [("tally:copy-of-a", add(11, limit=100))]
        assert plan.events == [{"stream_id": "tally:copy-of-a", "version": 1, "type": "Added"}]
        assert await runtime.store.history("tally:copy-of-a") == []
        await retry(runtime, letter, OLGA)
        await retry(runtime, letter, OLGA)
        [copied] = await runtime.store.history("tally:copy-of-a")
        assert copied.causation_id == letter.header("ce_id")
        assert copied.correlation_id == letter.header("ce_correlationid")
        await relayed(runtime)
    assert [record.header("ce_subject") for record in tallies.records()].count("tally:copy-of-a") == 1


async def test_background_work_that_a_reaction_waits_for_runs_during_a_retry(tallies: Tallies) -> None:
    letter = await refused_letter(tallies)
    ready = asyncio.Event()

    async def wait() -> None:
        await ready.wait()

    async def get_ready() -> None:
        ready.set()
        await asyncio.Event().wait()

    waiting = reacting(tallies, limit=100, ready=wait)
    service = replace(waiting.service, background=[Background("worker", lambda _: get_ready())])
    async with replace(waiting, service=service).opened() as runtime, running_background_work(runtime):
        await asyncio.wait_for(retry(runtime, letter, OLGA), 20)
        assert len(await runtime.store.history("tally:copy-of-a")) == 1
