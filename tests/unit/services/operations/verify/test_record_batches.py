"""Record batches that a Kafka client has written are cut into the same messages, wherever reading begins."""

import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from services.operations.verify.log_comparison.messages import Message
from services.operations.verify.log_comparison.record_batches import DECODED, ENCODED, open_body, unpack_batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NO_PRODUCER = {"is_transactional": 0, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
FIRST_MS = 1_700_000_000_000

Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]


def batch(messages: list[Record], codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(magic=2, compression_type=codec, batch_size=10**7, **NO_PRODUCER)
    for n, (key, value, headers) in enumerate(messages):
        builder.append(n, FIRST_MS + 700 * n, key, value, headers)
    return bytes(builder.build())


def read(message: Message) -> Record:
    _, key, (_, body) = message
    value, headers = open_body(body)
    return key, value, [(name.decode(), content or b"") for name, content in headers]


@given(st.integers(-(2**62), 2**62))
def test_a_number_survives_being_encoded_and_decoded_as_a_varint(number: int) -> None:
    assert DECODED[ENCODED[number]] == number


content = st.binary(max_size=200)
message = st.tuples(st.none() | content, st.none() | content, st.lists(st.tuples(st.text(max_size=20), content)))


@given(st.lists(message, min_size=1, max_size=40))
def test_messages_are_read_as_a_client_has_written_them(messages: list[Record]) -> None:
    found, following = unpack_batches(batch(messages), 0)
    assert [read(it) for it in found] == messages
    assert [(offset, ms) for offset, _, (ms, _) in found] == [(n, FIRST_MS + 700 * n) for n in range(len(messages))]
    assert following == len(messages)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_compressed_batches_are_read(codec: int) -> None:
    messages: list[Record] = [(b"key", b"value" * 100, [("header", b"content")])] * 300
    found, _ = unpack_batches(batch(messages, codec), 0)
    assert [read(it) for it in found] == messages


def test_reading_may_begin_within_a_batch_and_ends_before_a_batch_that_is_cut_off() -> None:
    messages: list[Record] = [(b"key", b"%d" % n, []) for n in range(5)]
    found, following = unpack_batches(batch(messages) + batch(messages)[:-1], 3)
    assert [read(it) for it in found] == messages[3:]
    assert following == 5


def test_a_batch_whose_bytes_were_changed_is_refused() -> None:
    fetched = bytearray(batch([(b"key", b"value", [])]))
    fetched[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        unpack_batches(bytes(fetched), 0)
