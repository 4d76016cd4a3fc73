"""The flow of messages as `till status` shows it."""

import pytest

from infra.local.flow import Flow, flows
from shared.recovery.settlements import drop
from tests.integration.shared.dead_lettering import OLGA, die
from tests.integration.shared.tallies import Tallies

pytestmark = pytest.mark.anyio


async def flow(tallies: Tallies) -> Flow:
    [found] = [flow for flow in await flows(tallies.settings) if flow.service == tallies.service.name]
    return found


async def test_status_counts_a_dead_letter_until_it_is_retried_or_dropped(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    assert (await flow(tallies)).dead_letters == 1
    async with tallies.opened() as runtime:
        await drop(runtime.pool, letter, "noise", OLGA)
    assert (await flow(tallies)).dead_letters == 0
