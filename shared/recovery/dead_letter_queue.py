"""Reads the dead-letter queue of a service: all letters, or the one at an offset."""

from collections.abc import AsyncIterator

from shared.errors import OperatorError
from shared.messaging.topic_reader import read_record, read_topic
from shared.recovery.dead_letters import Death, Letter, dead_letter_topic, parse_letter
from shared.settings import Settings


async def read_letters(settings: Settings, service: str) -> AsyncIterator[Letter]:
    """Yields every dead letter of the service, settled or not, oldest first; of duplicates only the first."""
    seen: set[Death] = set()
    async for records in read_topic(settings, dead_letter_topic(service)):
        for record in records:
            letter = parse_letter(record)
            if letter.death not in seen:
                seen.add(letter.death)
                yield letter


async def read_letter(settings: Settings, topic: str, partition: int, offset: int) -> Letter:
    record = await read_record(settings, topic, partition, offset)
    if record is None:
        raise OperatorError(f"There is no dead letter {topic}/{partition}/{offset}.", "See: till dlq list --all")
    return parse_letter(record)
