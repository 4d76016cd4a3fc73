"""Feeds the risk check from `payment.events` and `fraud.alerts`: reads both from the start, then follows them."""

import asyncio
import logging
from collections.abc import Sequence

from aiokafka import ConsumerRecord
from aiokafka.errors import KafkaError

from services.payment.risk import Rules, Verdict
from services.payment.velocity import Attempt, Velocity, assess_attempt, record_alert, record_event
from shared.errors import OperatorError
from shared.messaging.topic_reader import open_reader
from shared.schemas.codec import Undecodable
from shared.schemas.decoder import Decoder
from shared.settings import Settings

log = logging.getLogger(__name__)

EVENTS, ALERTS = "payment.events", "fraud.alerts"
FOLLOWED = (EVENTS, ALERTS)
RETRY_SECONDS = 1.0


class VelocityFeed:
    """Keeps the payment history of one process. It joins no consumer group: each process must read every message."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._velocity = Velocity()
        self._caught_up = asyncio.Event()

    async def caught_up(self) -> None:
        """Waits until the history includes all that was in the topics at the start. Nothing is assessed before."""
        await self._caught_up.wait()

    def assess(self, attempt: Attempt) -> Verdict:
        """Gives the verdict on a payment by the history that was read so far."""
        return assess_attempt(self._velocity, attempt, self._rules)

    async def follow(self, decoder: Decoder, settings: Settings) -> None:
        """Reads both topics until cancelled, and waits while they cannot be read."""
        while True:
            try:
                await self._follow(decoder, settings)
            except (KafkaError, OperatorError, OSError) as error:
                log.warning("the risk check cannot read its topics; trying again", extra={"error": repr(error)})
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, decoder: Decoder, settings: Settings) -> None:
        # After an interruption it reads from the start again, because recording an event twice makes no difference.
        async with open_reader(settings, *FOLLOWED) as reader:
            ends = await reader.ends()
            async for _, records in reader.read(await reader.beginnings(), ends):
                await self._record(decoder, records)
            self._caught_up.set()
            async for records in reader.follow(ends):
                await self._record(decoder, records)

    async def _record(self, decoder: Decoder, records: Sequence[ConsumerRecord]) -> None:
        for record in records:
            try:
                data = await decoder.decode(record.value)
            except Undecodable:
                continue  # the consumers that act on it send it to the dead-letter queue with the reason
            if record.topic == ALERTS:
                record_alert(self._velocity, data)
            else:
                record_event(self._velocity, data, record.timestamp)
