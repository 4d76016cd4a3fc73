"""Tells violations from messages that are only on their way.

A running shop is never globally consistent. So whatever looks wrong is a suspect at first, and is looked at again until
nothing is on its way any more.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from aiokafka import TopicPartition

from services.operations.verify.consumer_lag import find_lags, is_quiet, open_consumed_topics
from services.operations.verify.findings import CheckContext, Findings
from shared.messaging.topic_reader import TopicReader

POLL_SECONDS = 0.1
SUSPECTS_AT_ONCE = 1_000
ENOUGH_VIOLATIONS = 1_000
"""A run that has found this many violations examines no more suspects."""

Suspect = TypeVar("Suspect")
Judge = Callable[[Collection[Suspect], bool], Awaitable[Collection[Suspect]]]
"""Looks at suspects again and returns the undecided ones; with True, everything that is still wrong is a violation."""


async def settle_suspects(
    context: CheckContext, suspects: Collection[Suspect], judge: Judge[Suspect], findings: Findings
) -> None:
    """Judges all suspects, each when nothing is on its way any more, or when the context's patience is over."""
    if not suspects:
        return
    left = list(suspects)
    give_up = time.monotonic() + context.patience
    async with open_consumed_topics(context) as consumed:
        ends = await consumed.ends()
        while left:
            if findings.total >= ENOUGH_VIOLATIONS:
                findings.notes.append(
                    f"{len(left):,} more look wrong in {findings.check}. They were not checked any further:"
                    " fix the first ones, and run this again."
                )
                return
            some, left = left[:SUSPECTS_AT_ONCE], left[SUSPECTS_AT_ONCE:]
            if stuck := await _judge_until_quiet(context, consumed, ends, some, judge, give_up):
                undecided = len(stuck) + len(left)
                findings.notes.append(f"{undecided} cannot be decided, because messages are stuck: see the check flow.")
                return


async def _judge_until_quiet(
    context: CheckContext,
    consumed: TopicReader,
    ends: dict[TopicPartition, int],
    suspects: Collection[Suspect],
    judge: Judge[Suspect],
    give_up: float,
) -> Collection[Suspect]:
    """Returns the suspects that cannot be decided, because the messages that would settle them do not arrive."""
    while suspects:
        # Asked first: a suspect that is wrong although nothing was on its way before is a violation.
        is_last = await is_quiet(context, consumed)
        if not is_last and time.monotonic() > give_up:
            if await find_lags(context, ends):
                return suspects
            is_last = True
        suspects = await judge(suspects, is_last)
        await asyncio.sleep(POLL_SECONDS if suspects else 0)
    return ()
