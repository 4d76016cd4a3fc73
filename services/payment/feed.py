"""Keeps the risk check's memory fed from `payment.events` and `fraud.alerts`: read from the start, then followed."""

import asyncio
import logging

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import KafkaError

from services.payment.risk import Rules, Verdict
from services.payment.velocity import Attempt, Velocity, heed, judge, observe
from shared.codec import Undecodable
from shared.kafka import client_options
from shared.registry import RegistryUnavailable, SchemaMemory
from shared.settings import Settings

log = logging.getLogger(__name__)

EVENTS, ALERTS = "payment.events", "fraud.alerts"
FOLLOWED = (EVENTS, ALERTS)
RETRY_SECONDS = 1.0


class VelocityFeed:
    """Without a group: every process that judges has to have seen everything."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._velocity = Velocity()
        self._caught_up = asyncio.Event()

    async def caught_up(self) -> None:
        """Nothing is judged before the memory has seen what there was at the start."""
        await self._caught_up.wait()

    def judge(self, attempt: Attempt) -> Verdict:
        return judge(self._velocity, attempt, self._rules)

    async def follow(self, memory: SchemaMemory, settings: Settings) -> None:
        while True:
            try:
                await self._follow(memory, settings)
            except (KafkaError, RegistryUnavailable, OSError) as error:
                log.warning("the risk memory is not fed; it tries again", extra={"error": repr(error)})
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, memory: SchemaMemory, settings: Settings) -> None:
        # Read again from the start after an interruption: seeing an event twice makes no difference.
        kafka = AIOKafkaConsumer(*FOLLOWED, **client_options(settings), auto_offset_reset="earliest")
        try:
            await kafka.start()
            ends = await kafka.end_offsets(kafka.assignment())
            while True:
                for records in (await kafka.getmany(timeout_ms=200, max_records=5_000)).values():
                    for record in records:
                        await self._take_note(memory, record)
                if not self._caught_up.is_set():
                    behind = [p for p, end in ends.items() if await kafka.position(p) < end]
                    if not behind:
                        self._caught_up.set()
        finally:
            await kafka.stop()

    async def _take_note(self, memory: SchemaMemory, record: ConsumerRecord) -> None:
        try:
            data = await memory.decode(record.value)
        except Undecodable:
            return  # the consumers that act on it set it aside with the reason
        if record.topic == ALERTS:
            heed(self._velocity, data)
        else:
            observe(self._velocity, data, record.timestamp)
