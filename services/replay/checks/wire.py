"""Messages of a topic as its broker has them, batch by batch, without what a client makes of each.

To compare bytes takes less than to take eleven headers out of them: a consumer's record of each would be half of the
check. The format is Kafka's own, the second version of its record batches.
"""

import asyncio
import re
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from aiokafka.errors import CorruptRecordException, KafkaError, LeaderNotAvailableError, NoError, for_code
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.util import calc_crc32c

from shared.kafka import client_options
from shared.settings import Settings

WAIT_MS, TRIES, RETRY_SECONDS = 500, 20, 0.5
BYTES = 1_048_576
"""Of a partition in one answer."""
HEAD = struct.Struct(">qiibIhiqqqhii")
LENGTH_ENDS, CHECKED = 12, 21
"""Where the length of a batch ends, and where begins what its checksum is of."""
VERSION, CODEC, APPENDED, CONTROL = 2, 0b111, 0b1000, 0b100000
CODECS = {0: bytes, 1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}

NUMBER = rb"([\x80-\xff]*[\x00-\x7f])"
FRONT = re.compile(NUMBER + b"." + NUMBER + NUMBER + NUMBER, re.DOTALL)
"""Of a message: its length, attributes, how far its time and its offset are from the batch's, the length of its key."""

Message = tuple[int, int, bytes | None, bytes]
"""Offset, milliseconds, key, and what is behind the key: value and headers, each with its length in front."""
Fetched = dict[int, tuple[list[Message], int]]


class Numbers(dict[bytes, int]):
    """By how they are written: seven bits a byte, the lowest first, signs folded in."""

    def __missing__(self, written: bytes) -> int:
        folded = 0
        for byte in reversed(written):
            folded = folded << 7 | byte & 0x7F
        number = folded >> 1 ^ -(folded & 1)
        if len(written) <= 2:  # those are met again and again
            self[written] = number
        return number


class Written(dict[int, bytes]):
    """The other way round."""

    def __missing__(self, number: int) -> bytes:
        folded, written = number << 1 ^ number >> 63, bytearray()
        while folded > 0x7F:
            written.append(folded & 0x7F | 0x80)
            folded >>= 7
        written.append(folded)
        self[number] = bytes(written)
        return self[number]


NUMBERS, WRITTEN = Numbers(), Written()


def unpacked(fetched: bytes, start: int) -> tuple[list[Message], int]:
    """The messages from that offset on, and the offset that comes next."""
    found: list[Message] = []
    at, following = 0, start
    while at + HEAD.size <= len(fetched):
        base, length, _, version, crc, attributes, last, first_ms, latest_ms, *_, count = HEAD.unpack_from(fetched, at)
        end = at + LENGTH_ENDS + length
        if end > len(fetched):  # the broker cuts off what is too much for one answer
            break
        body = fetched[at + CHECKED : end]
        if version != VERSION or calc_crc32c(body) != crc:
            raise CorruptRecordException(f"the batch at offset {base}")
        if not attributes & CONTROL:
            records = CODECS[attributes & CODEC](body[HEAD.size - CHECKED :])
            messages = _messages(records, count, base, first_ms)
            if attributes & APPENDED:
                messages = ((offset, latest_ms, key, rest) for offset, _, key, rest in messages)
            found += messages if base >= start else (it for it in messages if it[0] >= start)
        at, following = end, base + last + 1
    return found, following


def _messages(records: bytes, count: int, base: int, first_ms: int) -> Iterator[Message]:
    at, front, number = 0, FRONT.match, NUMBERS.__getitem__
    for _ in range(count):
        read = front(records, at)
        assert read
        length, ms, offset, size = map(number, read.groups())
        at, key = read.end(1) + length, read.end()
        behind = key + max(0, size)
        yield base + offset, first_ms + ms, records[key:behind] if size >= 0 else None, records[behind:at]


def opened(rest: bytes) -> tuple[bytes | None, list[tuple[bytes, bytes | None]]]:
    """The value, and the headers in order."""
    value, at = _sized(rest, 0)
    count, at = _number(rest, at)
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(count):
        name, at = _sized(rest, at)
        content, at = _sized(rest, at)
        headers.append((name or b"", content))
    return value, headers


def _sized(rest: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _number(rest, at)
    return (None, at) if size < 0 else (rest[at : at + size], at + size)


def _number(rest: bytes, at: int) -> tuple[int, int]:
    end = at
    while rest[end] & 0x80:
        end += 1
    return NUMBERS[rest[at : end + 1]], end + 1


class Wire:
    """A topic, read by partition and offset."""

    def __init__(self, client: AIOKafkaClient, topic: str) -> None:
        self._client = client
        self._topic = topic

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, topic: str) -> AsyncIterator[Self]:
        client = AIOKafkaClient(**client_options(settings))
        try:
            await client.bootstrap()
            await client.set_topics([topic])
            yield cls(client, topic)
        finally:
            await client.close()

    async def fetch(self, wanted: Mapping[int, int]) -> Fetched:
        """By partition: some messages from that offset on, and the offset that comes next."""
        for _ in range(TRIES - 1):
            try:
                return await self._fetch(wanted)
            except KafkaError as error:  # a broker goes, and another one leads
                if not error.retriable:
                    raise
            await asyncio.sleep(RETRY_SECONDS)
            await self._client.force_metadata_update()
        return await self._fetch(wanted)

    async def _fetch(self, wanted: Mapping[int, int]) -> Fetched:
        by_leader: dict[int, list[tuple[int, int, int]]] = {}
        for partition, offset in wanted.items():
            leader = self._client.cluster.leader_for_partition(TopicPartition(self._topic, partition))
            if leader in (None, -1):
                raise LeaderNotAvailableError
            by_leader.setdefault(leader, []).append((partition, offset, BYTES))
        found: Fetched = {}
        for leader, partitions in by_leader.items():
            request = FetchRequest(WAIT_MS, 1, len(partitions) * BYTES, 0, [(self._topic, partitions)])
            for _, answers in (await self._client.send(leader, request)).topics:
                for partition, code, *_, fetched in answers:
                    if (error := for_code(code)) is not NoError:
                        raise error(f"{self._topic}/{partition}")
                    found[partition] = unpacked(fetched or b"", wanted[partition])
        return found
