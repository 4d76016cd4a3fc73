"""An incoming message is made of a Kafka record or of a stored row, with the same metadata either way."""

from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka import ConsumerRecord

from shared.envelope import Recorded, cloud_event_headers
from shared.messaging.incoming import NOT_FROM_KAFKA, Incoming
from shared.schemas.codec import Undecodable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVENT = Recorded("cart:1", 3, "event-1", "ItemAdded", NOON, "request-1", "cause-1", "ann", "00-a-b-01", b"value")
HEADERS = cloud_event_headers(EVENT, "/test")
DATA = {"sku": "MUG-350"}


def record(headers: list[tuple[str, bytes]]) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord("cart.events", 2, 17, 0, 0, b"cart:1", b"value", None, 0, 0, tuple(headers))


def test_a_message_from_a_kafka_record_has_its_metadata_and_its_place() -> None:
    message = Incoming.from_record(record(HEADERS), "ItemAdded", DATA)
    assert message == Incoming(
        "ItemAdded", "cart:1", 3, DATA, "event-1", NOON, "request-1", "00-a-b-01", "cart.events", 2, 17
    )


def test_a_message_from_a_stored_row_equals_the_one_from_kafka_but_for_its_place() -> None:
    row: Any = ("cart:1", 3, "event-1", NOON, "request-1", "00-a-b-01", b"value")
    stored = Incoming.from_row(row, "ItemAdded", DATA, "cart.events")
    received = Incoming.from_record(record(HEADERS), "ItemAdded", DATA)
    assert stored == received._replace(partition=NOT_FROM_KAFKA, offset=NOT_FROM_KAFKA)


@pytest.mark.parametrize("missing", ["ce_id", "ce_type", "ce_subject", "ce_time", "ce_streamversion", "traceparent"])
def test_a_record_without_a_required_header_is_undecodable(missing: str) -> None:
    with pytest.raises(Undecodable, match=f"the header '{missing}' is missing"):
        Incoming.from_record(record([(name, text) for name, text in HEADERS if name != missing]), "ItemAdded", DATA)
