"""Commands under concurrency: each accepted command counts once, despite other writers, lost callers and retries."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from shared.decider import Decided
from shared.envelope import Context
from shared.errors import Contended, KeyReused, Refused, StaleVersion
from shared.service import Runtime
from shared.store.answers import Answered, KeyedRequest
from tests.integration.shared.loops import PATIENCE
from tests.integration.shared.tallies import ANN, Add, Added, RaiseTo, Tallies, Tally, add, handled

pytestmark = pytest.mark.anyio

Refusals = Refused, Contended, KeyReused, StaleVersion


async def outcome_of(runtime: Runtime, stream_id: str, command: Add | RaiseTo) -> Decided[Any, Any] | Exception:
    try:
        return await runtime.handler.handle(stream_id, command, ANN)
    except Refusals as no:
        return no


async def answer_to(
    runtime: Runtime, stream_id: str, command: Add | RaiseTo, request: KeyedRequest, context: Context = ANN
) -> Answered | Exception:
    try:
        return await runtime.handler.handle_once(stream_id, command, context, request)
    except Refusals as no:
        return no


def keyed(key: str, digest: bytes = b"digest") -> KeyedRequest:
    return KeyedRequest(key, digest, render)


def render(outcome: Decided[Any, Any] | Refused) -> tuple[int, bytes, bytes]:
    if isinstance(outcome, Refused):
        return 409, b"", outcome.message.encode()
    return 200, b"", f"{outcome.stream_id} {outcome.version} {outcome.state.total}".encode()


def answers(outcomes: Sequence[object]) -> set[tuple[int, bytes]]:
    """The different answers that clients have received, the first time or again."""
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    return {(it.answer.status, it.answer.body) for it in outcomes if isinstance(it, Answered)}


def replays(outcomes: Sequence[object]) -> list[bool]:
    return sorted(outcome.replayed for outcome in outcomes if isinstance(outcome, Answered))


async def versions(runtime: Runtime, stream_id: str) -> list[int]:
    return [recorded.version for recorded in await runtime.store.history(stream_id)]


async def test_writers_in_several_processes_never_lose_an_update_nor_pass_the_limit(tallies: Tallies) -> None:
    async def add_one(process: Runtime) -> Decided[Any, Any] | Exception:
        """Tries again when others were faster too often, as a client does; nothing was written then."""
        while isinstance(outcome := await outcome_of(process, "tally:a", add(1, limit=120)), Contended):
            pass
        return outcome

    async with tallies.processes(4) as processes:
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(*(add_one(process) for _ in range(50) for process in processes))
        accepted = [outcome for outcome in outcomes if isinstance(outcome, Decided)]
        assert (len(accepted), sum(isinstance(outcome, Refused) for outcome in outcomes)) == (120, 80)
        assert sorted(outcome.version for outcome in accepted) == list(range(1, 121))
        assert await versions(processes[0], "tally:a") == list(range(1, 121))
        assert (await processes[1].handler.state("tally:a")).state == Tally(120)
        assert await processes[0].pool.fetchval("SELECT count(*) FROM outbox") == 120


async def test_writers_of_many_streams_do_not_disturb_each_other(tallies: Tallies) -> None:
    async with tallies.processes(2) as processes:
        await asyncio.gather(
            *(handled(processes[n % 2], f"tally:{n % 40}", add(1, 1)) for n in range(400)),
        )
        for n in range(40):
            assert await versions(processes[0], f"tally:{n}") == list(range(1, 21))


async def test_commands_that_arrive_together_are_decided_one_after_the_other(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        outcomes = await asyncio.gather(*(outcome_of(runtime, "tally:a", add(4, limit=10)) for _ in range(3)))
        assert [isinstance(o, Decided) for o in outcomes] == [True, True, False]
        assert (await runtime.handler.state("tally:a")).state == Tally(8)


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
async def test_a_cancelled_caller_harms_no_other_and_its_command_is_done_in_full_or_not_at_all(
    tallies: Tallies, turns: int
) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(1000))
        neighbours = [asyncio.create_task(handled(runtime, "tally:a", add(1))) for _ in range(5)]
        leaving = asyncio.create_task(handled(runtime, "tally:a", add(100, 100, 100)))
        neighbours += [asyncio.create_task(handled(runtime, "tally:a", add(1))) for _ in range(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        leaving.cancel()
        results = await asyncio.gather(*neighbours)
        assert {result.events[0] for result in results} == {Added(1)}
        await runtime.handler.finish()
        events = [await runtime.decoder.decode(value) for value in await runtime.store.load("tally:a")]
        hundreds = events.count(Added(100))
        assert hundreds in (0, 3)
        assert (await runtime.handler.state("tally:a")).state == Tally(1010 + 100 * hundreds)


async def test_a_cached_state_never_refuses_what_the_stored_events_allow(tallies: Tallies) -> None:
    async with tallies.processes(2) as (here, there):
        await handled(here, "tally:a", add(10, limit=10))
        await handled(there, "tally:a", add(-5))
        assert (await handled(here, "tally:a", add(5, limit=10))).state == Tally(10)


async def test_a_cached_state_never_allows_what_the_stored_events_forbid(tallies: Tallies) -> None:
    async with tallies.processes(2) as (here, there):
        await handled(here, "tally:a", add(5, limit=10))
        await handled(there, "tally:a", add(5))
        with pytest.raises(Refused):
            await handled(here, "tally:a", add(1, limit=10))


async def test_a_cached_state_never_finds_nothing_to_do_when_the_stored_events_leave_something(
    tallies: Tallies,
) -> None:
    async with tallies.processes(2) as (here, there):
        await handled(here, "tally:a", RaiseTo(10))
        await handled(there, "tally:a", add(-4))
        assert (await handled(here, "tally:a", RaiseTo(10))).events == [Added(4)]
        nothing = await handled(there, "tally:a", RaiseTo(10))
        assert (nothing.events, nothing.version) == ([], 3)


async def test_a_read_sees_what_another_process_wrote(tallies: Tallies) -> None:
    async with tallies.processes(2) as (here, there):
        await handled(here, "tally:a", add(1))
        await handled(there, "tally:a", add(1))
        assert (await here.handler.state("tally:a")).version == 2


async def test_a_command_with_an_expected_version_is_accepted_only_while_that_version_is_current(
    tallies: Tallies,
) -> None:
    async with tallies.processes(2) as (here, there):
        assert (await handled(here, "tally:a", add(1), expected=0)).version == 1
        assert (await handled(there, "tally:a", add(1), expected=1)).version == 2
        with pytest.raises(StaleVersion) as stale:
            await handled(here, "tally:a", add(1), expected=1)
        assert stale.value.version == 2
        assert await versions(here, "tally:a") == [1, 2]


async def test_of_many_commands_with_the_same_expected_version_exactly_one_wins(tallies: Tallies) -> None:
    async with tallies.processes(3) as processes:
        for process in processes:
            await handled(process, "tally:a", add(1))

        async def try_it(process: Runtime) -> bool:
            try:
                await handled(process, "tally:a", add(1), expected=3)
            except StaleVersion:
                return False
            return True

        won = await asyncio.gather(*(try_it(process) for process in processes for _ in range(4)))
        assert sum(won) == 1
        assert await versions(processes[0], "tally:a") == [1, 2, 3, 4]


async def test_one_idempotency_key_sent_twenty_times_to_two_processes_has_one_effect_and_one_answer(
    tallies: Tallies,
) -> None:
    async with tallies.processes(2) as processes:
        outcomes = await asyncio.gather(
            *(answer_to(processes[n % 2], "tally:a", add(7), keyed("k")) for n in range(20))
        )
        assert answers(outcomes) == {(200, b"tally:a 1 7")}
        assert replays(outcomes) == [False] + [True] * 19
        assert await versions(processes[0], "tally:a") == [1]


async def test_one_idempotency_key_has_one_effect_even_if_each_attempt_names_a_stream_of_its_own(
    tallies: Tallies,
) -> None:
    """Opening a cart is such a case: the server makes a new cart id at every attempt."""
    async with tallies.processes(2) as processes:
        outcomes = await asyncio.gather(
            *(answer_to(processes[n % 2], f"tally:{n}", add(7), keyed("k")) for n in range(20))
        )
        assert len(answers(outcomes)) == 1
        assert await processes[0].pool.fetchval("SELECT count(*) FROM events") == 1
        assert await processes[0].pool.fetchval("SELECT count(*) FROM outbox") == 1


async def test_an_idempotency_key_used_for_another_request_is_refused_without_effect(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await answer_to(runtime, "tally:a", add(1), keyed("k", b"one"))
        with pytest.raises(KeyReused):
            await runtime.handler.handle_once("tally:a", add(2), ANN, keyed("k", b"another"))
        together = await asyncio.gather(
            *(answer_to(runtime, "tally:b", add(1), keyed("fresh", digest)) for digest in (b"one", b"another"))
        )
        assert [type(o) for o in together] == [Answered, KeyReused]
        assert await versions(runtime, "tally:a") == await versions(runtime, "tally:b") == [1]


async def test_the_same_idempotency_key_of_another_person_is_another_key(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        for actor in ("customer:ann", "customer:bob"):
            done = await answer_to(runtime, "tally:a", add(1), keyed("k"), Context(actor))
            assert isinstance(done, Answered)
            assert not done.replayed
        assert await versions(runtime, "tally:a") == [1, 2]


async def test_a_refusal_under_a_key_is_repeated_word_for_word_although_it_would_be_accepted_now(
    tallies: Tallies,
) -> None:
    async with tallies.processes(2) as (here, there):
        await handled(here, "tally:a", add(10))
        first = await answer_to(here, "tally:a", add(1, limit=10), keyed("k"))
        assert replays([first]) == [False]
        await handled(there, "tally:a", add(-10))
        again = [await answer_to(process, "tally:a", add(1, limit=10), keyed("k")) for process in (here, there)]
        assert replays(again) == [True, True]
        assert answers([first, *again]) == {(409, b"10 and 1 are more than 10.")}
        assert await versions(here, "tally:a") == [1, 2]


async def test_the_answer_under_a_key_is_the_one_of_the_first_request(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        await answer_to(runtime, "tally:a", add(1), keyed("k"))
        await handled(runtime, "tally:a", add(1))
        assert answers([await answer_to(runtime, "tally:a", add(1), keyed("k"))]) == {(200, b"tally:a 1 1")}


async def test_stopping_waits_for_every_command_that_was_accepted(tallies: Tallies) -> None:
    async with tallies.opened() as runtime:
        tasks = [asyncio.create_task(handled(runtime, f"tally:{n % 5}", add(1))) for n in range(50)]
        await asyncio.sleep(0)
    assert all(task.done() and task.result().events for task in tasks)


async def test_commands_in_one_transaction_are_decided_on_all_stored_events_of_streams_of_any_length(
    tallies: Tallies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.store.states.EVENTS_PER_QUERY", 3)
    lengths = [0, 2, 3, 7]
    async with tallies.processes(2) as (here, there):
        for n, length in enumerate(lengths):
            await handled(here, f"tally:{n}", add(*[1] * length))
        asked = [(f"tally:{n}", RaiseTo(10), ANN) for n in range(4)]
        async with there.pool.acquire() as connection, connection.transaction():
            await there.handler.handle_within(connection, [*asked, *asked, ("tally:1", add(5), ANN)])
        found = [await here.handler.state(f"tally:{n}") for n in range(4)]
        assert [it.state for it in found] == [Tally(10), Tally(15), Tally(10), Tally(10)]
        assert [it.version for it in found] == [1, 4, 4, 8]
