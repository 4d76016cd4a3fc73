"""The codec: events become bytes and come back, and any other Avro library reads the same values from the bytes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

import avro.io
import avro.schema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.codec import Codec, Undecodable, UnknownSchema, schema_id_of
from shared.schemas.contract.event_schemas import EventSchema, ReadingPlan


@dataclass(frozen=True, slots=True)
class Price:
    amount: int
    currency: str


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    quantity: int
    price: Price


@dataclass(frozen=True, slots=True)
class Sold:
    """One of each kind of field that events have: plain, nested, a sequence, and one that may be missing."""

    order_id: str
    lines: tuple[Line, ...]
    total: Price
    discount: Price | None
    codes: tuple[str, ...]
    note: str | None
    paid: bool


PRICE = {
    "type": "record",
    "name": "Price",
    "fields": [{"name": "amount", "type": "long"}, {"name": "currency", "type": "string"}],
}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "price", "type": PRICE},
    ],
}
SOLD: dict[str, Any] = {
    "type": "record",
    "name": "Sold",
    "namespace": "tests",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "total", "type": "Price"},
        {"name": "discount", "type": ["null", "Price"]},
        {"name": "codes", "type": {"type": "array", "items": "string"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "paid", "type": "boolean"},
    ],
}


def schema_of(definition: dict[str, Any], version: int = 1) -> EventSchema:
    return EventSchema("tests", f"{definition['namespace']}.{definition['name']}", version, "topic", definition)


def codec_for(event_type: type, definition: dict[str, Any], schema_id: int = 7) -> Codec:
    codec, schema = Codec(), schema_of(definition)
    codec.bind(event_type, schema, schema_id)
    codec.learn(schema_id, ReadingPlan(schema.record, schema.parsed, schema.parsed), event_type)
    return codec


CODEC = codec_for(Sold, SOLD)
MUG = Line("MUG-350", 2, Price(1190, "EUR"))
A_SALE = Sold("order-1", (MUG, MUG), Price(2380, "EUR"), None, ("SPRING",), None, True)

prices = st.builds(Price, st.integers(-(2**63), 2**63 - 1), st.text())
sales = st.builds(
    Sold,
    order_id=st.text(),
    lines=st.lists(st.builds(Line, st.text(), st.integers(-(2**31), 2**31 - 1), prices), max_size=4).map(tuple),
    total=prices,
    discount=st.none() | prices,
    codes=st.lists(st.text(), max_size=3).map(tuple),
    note=st.none() | st.text(),
    paid=st.booleans(),
)


@given(sales)
def test_an_event_comes_back_from_its_bytes(sale: Sold) -> None:
    assert CODEC.decode(CODEC.encode(sale)) == sale


@given(sales)
def test_an_event_always_has_the_same_bytes(sale: Sold) -> None:
    assert CODEC.encode(sale) == codec_for(Sold, SOLD).encode(sale)


@given(sales)
def test_another_avro_library_reads_the_same_event(sale: Sold) -> None:
    reader = avro.io.DatumReader(avro.schema.parse(json.dumps(SOLD)))
    body = BytesIO(CODEC.encode(sale)[5:])
    assert plain(reader.read(avro.io.BinaryDecoder(body))) == plain(asdict(sale))
    assert body.read() == b""


def plain(value: Any) -> Any:
    """Turns tuples into lists, because Avro does not tell them apart."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def test_the_schema_id_stands_in_front_as_every_confluent_client_expects_it() -> None:
    assert codec_for(Sold, SOLD, schema_id=0x01020304).encode(A_SALE)[:5] == b"\x00\x01\x02\x03\x04"
    assert schema_id_of(b"\x00\x01\x02\x03\x04rest") == 0x01020304


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x07abc", b'{"json": true}'])
def test_a_value_without_a_schema_id_in_front_is_undecodable(value: bytes) -> None:
    with pytest.raises(Undecodable, match="wire format"):
        CODEC.decode(value)


def test_an_unknown_schema_id_is_named_in_the_error() -> None:
    with pytest.raises(UnknownSchema, match="4294967295") as unknown:
        CODEC.decode(b"\x00\xff\xff\xff\xff")
    assert unknown.value.schema_id == 4294967295


@given(st.data())
def test_an_event_that_was_cut_off_is_never_read_as_another(data: st.DataObject) -> None:
    value = CODEC.encode(A_SALE)
    shorter = data.draw(st.integers(5, len(value) - 1))
    with pytest.raises(Undecodable, match=r"tests\.Sold"):
        CODEC.decode(value[:shorter])


@given(st.binary(min_size=1, max_size=20))
def test_bytes_left_over_after_an_event_are_an_error(more: bytes) -> None:
    with pytest.raises(Undecodable, match=f"{len(more)} bytes are left over"):
        CODEC.decode(CODEC.encode(A_SALE) + more)


@given(st.binary(max_size=60))
def test_any_bytes_after_a_known_schema_id_are_an_event_or_undecodable(garbage: bytes) -> None:
    """No other exception is raised, whatever fastavro does: consumers recognise poison messages by `Undecodable`."""
    with suppress(Undecodable):
        assert isinstance(CODEC.decode(b"\x00\x00\x00\x00\x07" + garbage), Sold)


def test_a_message_of_another_service_is_read_as_plain_fields() -> None:
    codec, schema = Codec(), schema_of(SOLD)
    codec.learn(7, ReadingPlan(schema.record, schema.parsed))
    assert plain(codec.decode(CODEC.encode(A_SALE))) == plain(asdict(A_SALE))


@dataclass(frozen=True, slots=True)
class Opened:
    customer: str
    channel: str


OPENED_1 = {
    "type": "record",
    "name": "Opened",
    "namespace": "tests",
    "fields": [{"name": "customer", "type": "string"}],
}
OPENED_2 = OPENED_1 | {
    "fields": [
        {"name": "channel", "type": "string", "default": "web"},
        {"name": "customer", "type": "string"},
    ]
}


def test_an_event_of_an_older_version_is_read_as_todays() -> None:
    old, new = schema_of(OPENED_1), schema_of(OPENED_2, version=2)
    codec = Codec()
    codec.learn(1, ReadingPlan(old.record, old.parsed, new.parsed), Opened)
    codec.learn(2, ReadingPlan(new.record, new.parsed, new.parsed), Opened)
    codec.bind(Opened, new, 2)
    assert codec.decode(b"\x00\x00\x00\x00\x01\x06ann") == Opened("ann", "web")
    assert codec.decode(codec.encode(Opened("bob", "app"))) == Opened("bob", "app")


def test_fields_are_matched_by_name_whatever_their_order_in_the_schema() -> None:
    codec = codec_for(Opened, OPENED_2)
    assert codec.encode(Opened(customer="ann", channel="app")) == b"\x00\x00\x00\x00\x07\x06app\x06ann"
    assert codec.decode(b"\x00\x00\x00\x00\x07\x06app\x06ann") == Opened(customer="ann", channel="app")


def test_only_an_event_that_was_bound_can_be_written() -> None:
    with pytest.raises(KeyError):
        CODEC.encode(Opened("ann", "web"))
