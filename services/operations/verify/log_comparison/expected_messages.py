"""Builds SQL that assembles the bytes an event should have in Kafka: value and headers as in a record of a batch.

The headers are those of `cloud_event_headers`, in the format that `record_batches` reads. PostgreSQL does it, because
fetching all columns and joining them in Python takes longer than comparing the result.
"""

from services.operations.verify.log_comparison.record_batches import ENCODED
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
FIXED_SIZES = {"ce_specversion": 3, "ce_id": 36, "ce_time": 27}
"""Headers whose content always has the same length."""


def _before_content(n: int, name: str) -> bytes:
    """Returns the bytes before the length of a header's content: its name, and first of all the number of headers."""
    return (ENCODED[len(HEADERS)] if n == 0 else b"") + ENCODED[len(name)] + name.encode()


def _short_headers() -> str:
    """Returns SQL for headers whose lengths fit one byte each, which can be joined as text, the fastest way.

    PostgreSQL text cannot contain NUL, and an empty header has length byte 0. So only the last header, which is often
    empty, is appended as bytes.
    """
    *others, last = HEADERS
    parts = []
    for n, name in enumerate(others):
        fixed = chr(2 * FIXED_SIZES[name]) if name in FIXED_SIZES else ""
        parts.append(f"'{_before_content(n, name).decode()}{fixed}'")
        if not fixed:
            parts.append(f"chr(2 * octet_length({CONTENTS[name]}))")
        parts.append(CONTENTS[name])
    parts.append(f"'{_before_content(len(others), last).decode()}'")
    return f"convert_to(concat({', '.join(parts)}), 'UTF8') || {_with_length(CONTENTS[last])}"


def _long_headers() -> str:
    """Returns SQL for headers of any length."""
    return " || ".join(
        f"'\\x{_before_content(n, name).hex()}'::bytea || {_with_length(CONTENTS[name])}"
        for n, name in enumerate(HEADERS)
    )


def _with_length(text: str) -> str:
    """Returns SQL for a content with its length before it: a zigzag varint of one, two or three bytes."""
    n = f"2 * octet_length({text})"
    return (
        f"(CASE WHEN {n} < 1 << 7 THEN set_byte('\\x00', 0, {n})"
        f" WHEN {n} < 1 << 14 THEN set_byte(set_byte('\\x0000', 0, {n} & 127 | 128), 1, {n} >> 7)"
        f" ELSE set_byte(set_byte(set_byte('\\x000000', 0, {n} & 127 | 128), 1, {n} >> 7 & 127 | 128), 2, {n} >> 14)"
        f" END || convert_to({text}, 'UTF8'))"
    )


ARE_SHORT = " AND ".join(
    f"octet_length({CONTENTS[name]}) BETWEEN 1 AND 63" for name in HEADERS[:-1] if name not in FIXED_SIZES
)
# Milliseconds are cut, not rounded; half a microsecond is added, because a float may be a little below a whole number.
MILLIS = "floor(date_part('epoch', time) * 1000 + 0.0005)::bigint"
MESSAGE = f"{MILLIS}, value, CASE WHEN {ARE_SHORT} THEN {_short_headers()} ELSE {_long_headers()} END"
"""Three columns: the message's time, its value, and its headers with names and lengths. Parameter $1 is `ce_source`."""
