"""What Kafka should have of a stored event, put together by the server that stores it: SQL for the bytes of a message.

A message is as `cloud_event_headers` has it, in the format of `wire`. To send the columns and put them together here
would take longer than to compare the result.
"""

from services.replay.checks.wire import WRITTEN
from shared.envelope import EPOCH, Recorded, cloud_event_headers

BLANK = Recorded("", 0, "", "", EPOCH, "", "", "", "", b"")
HEADERS = [name for name, _ in cloud_event_headers(BLANK, "")]
CONTENTS = {
    "ce_specversion": "'1.0'",
    "ce_id": "event_id::text",
    "ce_type": "type",
    "ce_source": "$1::text",
    "ce_subject": "stream_id",
    "ce_time": """to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    "ce_streamversion": "version::text",
    "ce_correlationid": "correlation_id",
    "ce_causationid": "causation_id",
    "ce_actor": "actor",
    "traceparent": "traceparent",
}
SIZES = {"ce_specversion": 3, "ce_id": 36, "ce_time": 27}
"""Of those that are always as long."""


def _front(n: int, name: str) -> bytes:
    """What is in front of a header's content: its name, and before the first how many there are."""
    return (WRITTEN[len(HEADERS)] if n == 0 else b"") + WRITTEN[len(name)] + name.encode()


def _short() -> str:
    """SQL for headers of which each length is one byte, so that most of them is text. Text can hold no zero, which is
    the length of nothing; only the last one, often empty, is put behind it as bytes.
    """
    *others, last = HEADERS
    parts = []
    for n, name in enumerate(others):
        parts.append("'" + _front(n, name).decode() + (chr(2 * SIZES[name]) if name in SIZES else "") + "'")
        parts += [] if name in SIZES else [f"chr(2 * octet_length({CONTENTS[name]}))"]
        parts.append(CONTENTS[name])
    parts.append("'" + _front(len(others), last).decode() + "'")
    return f"convert_to(concat({', '.join(parts)}), 'UTF8') || {_sized(CONTENTS[last])}"


def _long() -> str:
    fronts = (f"'\\x{_front(n, name).hex()}'::bytea || {_sized(CONTENTS[name])}" for n, name in enumerate(HEADERS))
    return " || ".join(fronts)


def _sized(text: str) -> str:
    """The content with its length in front, of one, two or three bytes."""
    n = f"2 * octet_length({text})"
    return (
        f"(CASE WHEN {n} < 1 << 7 THEN set_byte('\\x00', 0, {n})"
        f" WHEN {n} < 1 << 14 THEN set_byte(set_byte('\\x0000', 0, {n} & 127 | 128), 1, {n} >> 7)"
        f" ELSE set_byte(set_byte(set_byte('\\x000000', 0, {n} & 127 | 128), 1, {n} >> 7 & 127 | 128), 2, {n} >> 14)"
        f" END || convert_to({text}, 'UTF8'))"
    )


IS_SHORT = " AND ".join(
    f"octet_length({CONTENTS[name]}) BETWEEN 1 AND 63" for name in HEADERS[:-1] if name not in SIZES
)
# Milliseconds are cut, not rounded, with half a microsecond against what a float lacks of a whole one.
MILLIS = "floor(date_part('epoch', time) * 1000 + 0.0005)::bigint"
MESSAGE = f"{MILLIS}, value, CASE WHEN {IS_SHORT} THEN {_short()} ELSE {_long()} END"
"""Three columns: the time of the message, its value, and its headers with their names and lengths. $1 is the source."""
