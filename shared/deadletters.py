"""A message that could not be handled: its own bytes and headers, and beside them why, where and by whom."""

import traceback
from collections.abc import Iterator

from aiokafka import ConsumerRecord

from shared.envelope import Message, now, pack_headers, rfc3339

PREFIX = "dlq_"


def dead_letter(service: str, consumer: str, record: ConsumerRecord, error: BaseException) -> Message:
    time = now()
    reasons = {
        "reason": f"{type(error).__name__}: {error}",
        "causes": "\n".join(causes(error)),
        "trace": "".join(traceback.format_exception(error))[-4000:],
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "consumer": consumer,
        "time": rfc3339(time),
    }
    headers = list(record.headers) + [(PREFIX + name, text.encode()) for name, text in reasons.items()]
    key = (record.key or b"").decode(errors="replace")
    return Message(f"{service}.dlq", key, record.value or b"", pack_headers(headers), time)


def causes(error: BaseException | None) -> Iterator[str]:
    """From what failed down to what made it fail."""
    while error:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
