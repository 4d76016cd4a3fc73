"""What a retry would do, shown before it is done."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest
from sqlalchemy.schema import CreateTable

from shared.consumer import Incoming
from shared.database import Connection
from shared.deadletters import Letter
from shared.rehearsal import rehearse
from shared.service import Reaction
from shared.settling import beside, retry, settled
from tests.integration.dying import OLGA, POISON, all_letters, consumed, die, effects, mended, note_but_choke
from tests.integration.kit import Add, Tallies, add, handled, relayed
from tests.integration.test_consumer import VIEW, TallyRow

pytestmark = pytest.mark.anyio


async def test_a_rehearsal_shows_the_rows_and_leaves_everything_as_it_was(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with mended(tallies).opened() as runtime:
        plan = await rehearse(runtime, letter)
        assert plan.rows == {"effects": [{"stream_id": "tally:a", "version": 1, "amount": POISON}]}
        assert (plan.error, plan.commands, plan.events) == ("", [], [])
        assert (await effects(runtime), await settled(runtime.pool)) == ([], {})


async def test_a_rehearsal_shows_only_what_the_retry_would_write(tallies: Tallies) -> None:
    one, other = await die(tallies, "tally:a", "tally:b")
    async with mended(tallies).opened() as runtime:
        await retry(runtime, other, OLGA)
        plan = await rehearse(runtime, one)
        assert [row["stream_id"] for row in plan.rows["effects"]] == [one.header("ce_subject")]


async def test_a_rehearsal_tells_that_it_would_fail_again_and_why(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    async with tallies.following(note_but_choke).opened() as runtime:
        assert (await rehearse(runtime, letter)).error == f"RuntimeError: cannot apply {POISON}"
        assert await effects(runtime) == []


async def test_a_view_whose_row_has_moved_on_is_left_as_it_is(tallies: Tallies) -> None:
    async def view_but_choke(connection: Connection, messages: Sequence[Incoming]) -> None:
        if any(message.data.amount == POISON for message in messages):
            raise RuntimeError(f"cannot apply {POISON}")
        await VIEW.apply(connection, messages)

    async with tallies.following(view_but_choke).opened() as runtime:
        await runtime.pool.execute(str(CreateTable(TallyRow.__table__)))  # type: ignore[attr-defined]
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


def reacting(tallies: Tallies, limit: int, once: Callable[[], Awaitable[None]] | None = None) -> Tallies:
    """Every tally has a copy, which may be limited."""

    def copy(message: Incoming) -> list[tuple[str, Add]]:
        if message.stream_id.startswith("tally:copy-of-"):
            return []
        return [(message.stream_id.replace("tally:", "tally:copy-of-"), add(message.data.amount, limit=limit))]

    reaction = Reaction("copies", [tallies.topic], copy, once)
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


async def test_what_a_reaction_waits_for_runs_beside_the_retry(tallies: Tallies) -> None:
    letter = await refused_letter(tallies)
    ready = asyncio.Event()

    async def wait() -> None:
        await ready.wait()

    async def get_ready() -> None:
        ready.set()
        await asyncio.Event().wait()

    waiting = reacting(tallies, limit=100, once=wait)
    service = replace(waiting.service, beside_worker=lambda _: [get_ready()])
    async with replace(waiting, service=service).opened() as runtime, beside(runtime):
        await asyncio.wait_for(retry(runtime, letter, OLGA), 20)
        assert len(await runtime.store.history("tally:copy-of-a")) == 1
