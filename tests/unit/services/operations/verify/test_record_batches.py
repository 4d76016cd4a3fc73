"""Kafka's record batches, read as they are: what a client has written comes out, wherever one begins to read."""

import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from services.replay.checks.wire import NUMBERS, WRITTEN, Message, opened, unpacked

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NOBODY = {"is_transactional": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
FIRST_MS = 1_700_000_000_000

Written = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


def batch(messages: list[Written], codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(magic=2, compression_type=codec, batch_size=10**7, **NOBODY)
    for n, (key, value, headers) in enumerate(messages):
        builder.append(n, FIRST_MS + 700 * n, key, value, headers)
    return bytes(builder.build())


def read(message: Message) -> Written:
    _, _, key, rest = message
    value, headers = opened(rest)
    return key, value, [(name.decode(), content or b"") for name, content in headers]


@given(st.integers(-(2**62), 2**62))
def test_numbers_are_read_as_they_are_written(number: int) -> None:
    assert NUMBERS[WRITTEN[number]] == number


content = st.binary(max_size=200)
message = st.tuples(st.none() | content, st.none() | content, st.lists(st.tuples(st.text(max_size=20), content)))


@given(st.lists(message, min_size=1, max_size=40))
def test_what_was_written_is_read(messages: list[Written]) -> None:
    found, following = unpacked(batch(messages), 0)
    assert [read(it) for it in found] == messages
    assert [(offset, ms) for offset, ms, _, _ in found] == [(n, FIRST_MS + 700 * n) for n in range(len(messages))]
    assert following == len(messages)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_it_may_be_compressed(codec: int) -> None:
    messages: list[Written] = [(b"key", b"value" * 100, [("header", b"content")])] * 300
    found, _ = unpacked(batch(messages, codec), 0)
    assert [read(it) for it in found] == messages


def test_reading_begins_amid_a_batch_and_ends_before_one_that_is_cut_off() -> None:
    messages: list[Written] = [(b"key", b"%d" % n, []) for n in range(5)]
    found, following = unpacked(batch(messages) + batch(messages)[:-1], 3)
    assert [read(it) for it in found] == messages[3:]
    assert following == 5


def test_bytes_that_changed_on_the_way_are_not_read() -> None:
    fetched = bytearray(batch([(b"key", b"value", [])]))
    fetched[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        unpacked(bytes(fetched), 0)
