"""A shop that sells is never all of one piece: what looks wrong may only be on its way, and is looked at again."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition

from services.replay.checks.findings import Findings, World
from services.replay.checks.flow import is_quiet, lags, open_ends

LOOK_SECONDS = 0.1
SOME, ENOUGH = 1_000, 1_000
"""How many are looked at closely at a time, and how many violations are enough for one run."""

Suspect = TypeVar("Suspect")
Judge = Callable[[Collection[Suspect], bool], Awaitable[Collection[Suspect]]]
"""Looks at them again; with True for the last time, and what is still wrong is a violation. Gives the undecided."""


async def settle(world: World, suspects: Collection[Suspect], judge: Judge[Suspect], findings: Findings) -> None:
    """Until nothing is on its way any more, or what was has had time to arrive."""
    if not suspects:
        return
    left = list(suspects)
    give_up = time.monotonic() + world.patience
    async with open_ends(world) as kafka:
        ends = await kafka.end_offsets(kafka.assignment())
        while left:
            if findings.total >= ENOUGH:
                findings.notes.append(
                    f"{len(left):,} more look wrong in {findings.check}. Mend these first: each of the others would"
                    " have to be looked at closely."
                )
                return
            some, left = left[:SOME], left[SOME:]
            if stuck := await _undecided(world, kafka, ends, some, judge, give_up):
                undecided = len(stuck) + len(left)
                findings.notes.append(f"{undecided} are undecided: what would settle them is stuck, see flow.")
                return


async def _undecided(
    world: World,
    kafka: AIOKafkaConsumer,
    ends: dict[TopicPartition, int],
    some: Collection[Suspect],
    judge: Judge[Suspect],
    give_up: float,
) -> Collection[Suspect]:
    """Those that cannot be decided, because what would do it does not come."""
    while some:
        # Asked before we look: what is wrong although nothing was on its way is wrong.
        is_last = await is_quiet(world, kafka)
        if not is_last and time.monotonic() > give_up:
            if await lags(world, ends):
                return some
            is_last = True
        some = await judge(some, is_last)
        await asyncio.sleep(LOOK_SECONDS if some else 0)
    return ()
