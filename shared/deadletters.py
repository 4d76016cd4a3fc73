"""A message that could not be handled: its own bytes and headers, and beside them why, where and by whom."""

import traceback
from collections.abc import Iterator

from aiokafka import ConsumerRecord

from shared.envelope import Message, now, pack_headers, rfc3339

PREFIX = "dlq_"
LIMIT = 800_000
LONGEST = 4_000


def dead_letter(service: str, consumer: str, record: ConsumerRecord, error: BaseException) -> Message:
    time = now()
    value = record.value or b""
    reasons = {
        "reason": f"{type(error).__name__}: {error}"[:LONGEST],
        "causes": "\n".join(causes(error))[:LONGEST],
        "trace": "".join(traceback.format_exception(error))[-LONGEST:],
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "consumer": consumer,
        "time": rfc3339(time),
    }
    if len(value) > LIMIT:
        # It came compressed, or the broker's limit is high: a letter that no broker takes would block all others.
        reasons["left_out"] = f"{len(value)} bytes; they are where topic, partition and offset say"
        value = b""
    headers = list(record.headers) + [(PREFIX + name, text.encode(errors="replace")) for name, text in reasons.items()]
    # The key of an outbox row is text. The bytes it was are kept beside.
    key = (record.key or b"").decode(errors="replace").replace("\0", "\ufffd")
    return Message(f"{service}.dlq", key, value, pack_headers([*headers, (PREFIX + "key", record.key)]), time)


def causes(error: BaseException | None) -> Iterator[str]:
    """From what failed down to what made it fail."""
    while error:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
