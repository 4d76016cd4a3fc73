"""What becomes of dead letters: retried through the consumer that failed on them, or dropped; each of them once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

import asyncpg
from aiokafka import ConsumerRecord

from shared.consumer import TRANSIENT, TRIES, Consumer, Incoming
from shared.database import Connection, Pool
from shared.deadletters import Death, Letter, reason, record_at
from shared.envelope import now
from shared.errors import OperatorError
from shared.service import Reaction, Runtime
from shared.settings import Settings
from shared.store import Conflict

How = Literal["retried", "dropped"]
GET_READY_SECONDS = 300.0
NOT_TWICE = "Try again: what was done is not done twice."

SETTLE = """
INSERT INTO settled_letters (consumer, topic, partition, "offset", died, how, why, by, time)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING
"""
SETTLED = 'SELECT consumer, topic, partition, "offset", died, how, why, by, time FROM settled_letters'
ONE = f'{SETTLED} WHERE (consumer, topic, partition, "offset", died) = ($1, $2, $3, $4, $5)'


@dataclass(frozen=True)
class Settled:
    how: How
    why: str
    """Of a dropped one, in the words of who dropped it."""
    by: str
    time: datetime


class FailedAgain(OperatorError):
    """The message still cannot be applied; nothing was changed."""


class NoConsumer(OperatorError):
    """Who failed on it is no longer declared."""


async def settled(pool: Pool) -> dict[Death, Settled]:
    try:
        rows = await pool.fetch(SETTLED)
    except asyncpg.UndefinedTableError:
        return {}  # no process that knows of settling has started here yet
    return {Death(*row[:5]): Settled(*row[5:]) for row in rows}


async def settlement(pool: Pool, letter: Letter) -> Settled | None:
    row = await pool.fetchrow(ONE, *letter.death)
    return Settled(*row[5:]) if row else None


async def drop(pool: Pool, letter: Letter, why: str, by: str) -> Settled | None:
    """Settle it without a retry; it stays in its topic. If it had been settled before: how."""
    async with pool.acquire() as connection:
        dropped = await _settle(connection, letter, "dropped", why, by)
    return None if dropped else await settlement(pool, letter)


async def _settle(connection: Connection, letter: Letter, how: How, why: str, by: str) -> bool:
    """Whether it is ours to settle. Who comes while another is at it waits for how that ends."""
    return await connection.execute(SETTLE, *letter.death, how, why, by, now()) == "INSERT 0 1"


@asynccontextmanager
async def beside(runtime: Runtime) -> AsyncIterator[None]:
    """What reactions may wait for runs for as long as the block; the consumers themselves do not."""
    tasks = [asyncio.create_task(work) for work in runtime.service.beside_worker(runtime)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Prepared(NamedTuple):
    consumer: Consumer
    reaction: Reaction | None
    record: ConsumerRecord


async def prepare(runtime: Runtime, letter: Letter) -> Prepared:
    """All that a retry needs, before its transaction: what is waited for inside, others wait for as well."""
    name = letter.death.consumer
    consumer = next((consumer for consumer in runtime.consumers if consumer.name == name), None)
    if consumer is None:
        raise NoConsumer(
            f"{letter.id} cannot be retried: there is no consumer {name or 'named in it'}.",
            f"Settle it with: till dlq drop {letter.id} --reason ...",
        )
    record = await original(runtime.settings, letter)
    service = runtime.service
    reaction = next((r for r in service.reactions if f"{service.name}.{r.name}" == name), None)
    if reaction and reaction.once:
        try:
            async with asyncio.timeout(GET_READY_SECONDS):
                await reaction.once()
        except TimeoutError as error:
            raise OperatorError(f"{name} was not ready to apply anything in time.", NOT_TWICE) from error
    return Prepared(consumer, reaction, record)


async def original(settings: Settings, letter: Letter) -> ConsumerRecord:
    """The message with its value, read where it came from if the letter could not hold it."""
    if not letter.left_out:
        return letter.original
    record = await record_at(settings, letter.death.topic, letter.death.partition, letter.death.offset)
    if record is None:
        raise FailedAgain(f"{letter.id} was too large to be kept, and is no longer where it was read.")
    return record


async def retry(runtime: Runtime, letter: Letter, by: str) -> Settled | None:
    """Apply the message and settle the letter, in one transaction. If it had been settled before: how."""
    consumer, _, record = await prepare(runtime, letter)
    try:
        message = await consumer.incoming(record)
        if await _applied_and_settled(runtime.pool, consumer, message, letter, by):
            return None
    except TRANSIENT as error:
        raise OperatorError(f"{letter.id} could not be tried: {reason(error)}", NOT_TWICE) from error
    except Exception as error:  # whatever it is, it is why the letter stays
        raise FailedAgain(f"{letter.id} failed again: {reason(error)}", f"See: till dlq show {letter.id}") from error
    return await settlement(runtime.pool, letter)


async def _applied_and_settled(pool: Pool, consumer: Consumer, message: Incoming, letter: Letter, by: str) -> bool:
    attempts = 0
    while True:
        try:
            async with pool.acquire() as connection, connection.transaction():
                ours = await _settle(connection, letter, "retried", "", by)
                if ours:
                    await consumer.apply_again(connection, message)
            return ours
        except Conflict:  # a stream it writes to was written by another: once more, on what is stored now
            attempts += 1
            if attempts == TRIES:
                raise
