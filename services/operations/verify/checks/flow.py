"""Invariant I8: nothing is stuck. Outboxes empty, consumers reach the ends of their topics, no dead letter waits."""

import asyncio
import time

from services.operations.reading.stores import Store
from services.operations.verify.consumer_lag import find_lags, first_in_outbox, list_consumers, open_consumed_topics
from services.operations.verify.findings import CheckContext, Findings, Violation
from shared.errors import OperatorError
from shared.recovery.dead_letter_queue import read_letters
from shared.recovery.settlements import read_settlements

NAME, ABOUT = "flow", "outboxes empty, consumers at the end, dead letters settled"
POLL_SECONDS = 0.1


async def check(context: CheckContext) -> list[Findings]:
    findings = Findings(NAME, ABOUT, unit="consumers")
    async with open_consumed_topics(context) as consumed:
        ends = await consumed.ends()
        findings.looked_at = sum(len(list_consumers(service)) for service in context.services)
        for store in context.stores.values():
            await _check_outbox(context, store, findings)
        give_up = time.monotonic() + context.patience
        while (lags := await find_lags(context, ends)) and time.monotonic() < give_up:
            await asyncio.sleep(POLL_SECONDS)
    for lag in lags:
        what = f"{lag.consumer} is {lag.end - lag.reached} messages behind, and makes no progress."
        place = f"{lag.partition.topic}/{lag.partition.partition}/{lag.reached}"
        findings.add(Violation(what, position=place, look="till status"))
    for store in context.stores.values():
        await _check_dead_letters(context, store, findings)
    return [findings]


async def _check_outbox(context: CheckContext, store: Store, findings: Findings) -> None:
    last = await store.pool.fetchval("SELECT max(position) FROM outbox")
    give_up = time.monotonic() + context.patience
    while last is not None and time.monotonic() < give_up:
        if not await store.pool.fetchval("SELECT EXISTS (SELECT FROM outbox WHERE position <= $1)", last):
            return
        await asyncio.sleep(POLL_SECONDS)
    if last is not None and (first := await first_in_outbox(store)):
        what = f"The outbox of {store.service} is not emptied: for {first['topic']} since {first['time']:%H:%M:%S}."
        findings.add(Violation(what, first["key"], f"outbox position {first['position']}", "till status"))


async def _check_dead_letters(context: CheckContext, store: Store, findings: Findings) -> None:
    settlements = await read_settlements(store.pool)
    try:
        async for letter in read_letters(context.settings, store.service):
            if letter.death not in settlements and (context.since is None or letter.death.time >= context.since):
                what = f"A dead letter of {letter.death.consumer or 'nobody'} is not settled: {letter.reason}"
                findings.add(Violation(what, letter.header("ce_subject"), letter.id, f"till dlq show {letter.id}"))
    except OperatorError as missing:  # a service that never had a dead letter may have no topic for them
        findings.notes.append(missing.message)
