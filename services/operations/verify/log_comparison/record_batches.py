"""Cuts Kafka's record batches (version 2 of the format) into messages, without taking their headers apart.

A comparison of bytes costs less than parsing eleven headers of each message.
"""

import re
import struct
from collections.abc import Iterator

from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from aiokafka.errors import CorruptRecordException
from aiokafka.record.util import calc_crc32c

from services.operations.verify.log_comparison.messages import Contents, Message

# base offset, length, leader epoch, version, CRC, attributes, last offset delta, first and last timestamp,
# producer id, producer epoch, base sequence, number of records
HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_END = 12
"""The length field counts the bytes from here on."""
CHECKSUM_START = 21
"""The checksum covers the bytes from here on."""
VERSION = 2
CODEC_BITS, LOG_APPEND_TIME_BIT, CONTROL_BIT = 0b111, 0b1000, 0b100000
CODECS = {0: bytes, 1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}

VARINT = rb"([\x80-\xff]*[\x00-\x7f])"
RECORD_START = re.compile(VARINT + b"." + VARINT + VARINT + VARINT, re.DOTALL)
"""Matches the start of a record: length, attributes, timestamp delta, offset delta, length of the key."""


class Decoded(dict[bytes, int]):
    """Zigzag varints, decoded on first use; short ones are cached, because they occur again and again."""

    def __missing__(self, encoded: bytes) -> int:
        zigzag = 0
        for byte in reversed(encoded):
            zigzag = zigzag << 7 | byte & 0x7F
        number = zigzag >> 1 ^ -(zigzag & 1)
        if len(encoded) <= 2:
            self[encoded] = number
        return number


class Encoded(dict[int, bytes]):
    """Numbers as zigzag varints, encoded on first use and cached."""

    def __missing__(self, number: int) -> bytes:
        zigzag, encoded = number << 1 ^ number >> 63, bytearray()
        while zigzag > 0x7F:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
        self[number] = bytes(encoded)
        return self[number]


DECODED, ENCODED = Decoded(), Encoded()


def unpack_batches(fetched: bytes, start: int) -> tuple[list[Message], int]:
    """Returns the messages from offset `start` on, and the offset that comes next.

    The body of a message is its time, and the bytes of value and headers as they are in the record.
    """
    found: list[Message] = []
    at, following = 0, start
    while at + HEADER.size <= len(fetched):
        base, length, _, version, crc, attributes, last, first_ms, last_ms, *_, count = HEADER.unpack_from(fetched, at)
        end = at + LENGTH_END + length
        if end > len(fetched):  # the broker cuts the last batch off where the answer is full
            break
        checked = fetched[at + CHECKSUM_START : end]
        if version != VERSION or calc_crc32c(checked) != crc:
            raise CorruptRecordException(f"the batch at offset {base}")
        if not attributes & CONTROL_BIT:
            records = CODECS[attributes & CODEC_BITS](checked[HEADER.size - CHECKSUM_START :])
            messages = _messages(records, count, base, first_ms)
            if attributes & LOG_APPEND_TIME_BIT:
                messages = ((offset, key, (last_ms, body)) for offset, key, (_, body) in messages)
            found += messages if base >= start else (it for it in messages if it[0] >= start)
        at, following = end, base + last + 1
    return found, following


def _messages(records: bytes, count: int, base: int, first_ms: int) -> Iterator[Message]:
    at, match, decoded = 0, RECORD_START.match, DECODED.__getitem__
    for _ in range(count):
        start = match(records, at)
        assert start
        length, ms, offset, key_length = map(decoded, start.groups())
        at, key = start.end(1) + length, start.end()
        value = key + max(0, key_length)
        yield base + offset, records[key:value] if key_length >= 0 else None, (first_ms + ms, records[value:at])


def open_body(body: bytes) -> Contents:
    """Takes value and headers apart."""
    value, at = _sized(body, 0)
    count, at = _number(body, at)
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name, at = _sized(body, at)
        content, at = _sized(body, at)
        headers.append((name or b"", content))
    return Contents(value, headers)


def _sized(body: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _number(body, at)
    return (None, at) if size < 0 else (body[at : at + size], at + size)


def _number(body: bytes, at: int) -> tuple[int, int]:
    end = at
    while body[end] & 0x80:
        end += 1
    return DECODED[body[at : end + 1]], end + 1
