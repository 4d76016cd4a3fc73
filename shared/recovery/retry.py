"""Retries a dead letter through the consumer that failed on it: effect and settlement in one transaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import ConsumerRecord

from shared.errors import OperatorError
from shared.messaging.consumer import CONFLICT_ATTEMPTS, TRANSIENT, Consumer
from shared.messaging.incoming import Incoming
from shared.messaging.reactions import Reaction
from shared.messaging.topic_reader import read_record
from shared.recovery.dead_letters import Letter, reason
from shared.recovery.settlements import Settlement, find_settlement, settle
from shared.service import Runtime
from shared.settings import Settings
from shared.store.database import Pool
from shared.store.event_store import Conflict

GET_READY_SECONDS = 300.0
NOT_TWICE = "Try again: what was done is not done twice."


class FailedAgain(OperatorError):
    """The message still cannot be applied; nothing was changed."""


class NoConsumer(OperatorError):
    """The consumer that failed on the message no longer exists."""


class PreparedRetry(NamedTuple):
    """All that a retry needs."""

    consumer: Consumer
    reaction: Reaction | None
    """The consumer's reaction; None if it feeds a read model."""
    record: ConsumerRecord


async def retry(runtime: Runtime, letter: Letter, by: str) -> Settlement | None:
    """Applies the message and settles the letter, in one transaction.

    If the letter was settled before, nothing is applied and that settlement is returned.
    """
    consumer, _, record = await prepare(runtime, letter)
    try:
        message = await consumer.decode(record)
        if await _settle_and_apply(runtime.pool, consumer, message, letter, by):
            return None
    except TRANSIENT as error:
        raise OperatorError(f"{letter.id} could not be tried: {reason(error)}", NOT_TWICE) from error
    except Exception as error:  # any failure leaves the letter in the queue
        raise FailedAgain(f"{letter.id} failed again: {reason(error)}", f"See: till dlq show {letter.id}") from error
    return await find_settlement(runtime.pool, letter)


async def prepare(runtime: Runtime, letter: Letter) -> PreparedRetry:
    """Collects all that a retry needs, before its transaction: waiting inside it would make others wait too."""
    name = letter.death.consumer
    consumer = next((consumer for consumer in runtime.consumers if consumer.name == name), None)
    if consumer is None:
        raise NoConsumer(
            f"{letter.id} cannot be retried: there is no consumer {name or 'named in it'}.",
            f"Settle it with: till dlq drop {letter.id} --reason ...",
        )
    record = await original_record(runtime.settings, letter)
    service = runtime.service
    reaction = next((r for r in service.reactions if f"{service.name}.{r.name}" == name), None)
    if reaction and reaction.ready:
        try:
            async with asyncio.timeout(GET_READY_SECONDS):
                await reaction.ready()
        except TimeoutError as error:
            raise OperatorError(f"{name} was not ready to apply anything in time.", NOT_TWICE) from error
    return PreparedRetry(consumer, reaction, record)


async def original_record(settings: Settings, letter: Letter) -> ConsumerRecord:
    """Returns the message with its value, which is read from its original topic if the letter could not hold it."""
    if not letter.left_out:
        return letter.original
    record = await read_record(settings, letter.death.topic, letter.death.partition, letter.death.offset)
    if record is None:
        raise FailedAgain(f"{letter.id} was too large to be kept, and is no longer in its original topic.")
    return record


async def _settle_and_apply(pool: Pool, consumer: Consumer, message: Incoming, letter: Letter, by: str) -> bool:
    """Returns False, and applies nothing, if the letter was settled before."""
    attempts = 0
    while True:
        try:
            async with pool.acquire() as connection, connection.transaction():
                is_first = await settle(connection, letter, "retried", "", by)
                if is_first:
                    await consumer.apply_dead_letter(connection, message)
            return is_first
        except Conflict:  # another writer appended to the same stream: decide again, on what is stored now
            attempts += 1
            if attempts == CONFLICT_ATTEMPTS:
                raise


@asynccontextmanager
async def running_background_work(runtime: Runtime) -> AsyncIterator[None]:
    """Runs, for the length of the block, what reactions may wait for; the consumers themselves do not run."""
    tasks = [asyncio.create_task(work) for work in runtime.background("worker")]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
