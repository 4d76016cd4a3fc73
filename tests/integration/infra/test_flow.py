"""What `till status` tells of the flow of facts."""

import pytest

from infra.local.flow import Flow, flows
from shared.settling import drop
from tests.integration.dying import OLGA, die
from tests.integration.kit import Tallies

pytestmark = pytest.mark.anyio


async def flow(tallies: Tallies) -> Flow:
    [found] = [flow for flow in await flows(tallies.settings) if flow.service == tallies.service.name]
    return found


async def test_a_dead_letter_counts_until_it_is_settled(tallies: Tallies) -> None:
    [letter] = await die(tallies, "tally:a")
    assert (await flow(tallies)).dead_letters == 1
    async with tallies.opened() as runtime:
        await drop(runtime.pool, letter, "noise", OLGA)
    assert (await flow(tallies)).dead_letters == 0
