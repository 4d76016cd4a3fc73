"""Every accepted write is in the topics, for anyone to read. This module runs last, when most has been written."""

import json
import struct
from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.e2e.shop import Shop, new_sku, price, put_product, versions
from tests.till import eventually

HEADERS = [
    *("ce_specversion", "ce_id", "ce_type", "ce_source", "ce_subject", "ce_time", "ce_streamversion"),
    *("ce_correlationid", "ce_causationid", "ce_actor", "traceparent"),
]


@pytest.fixture
def registry(shop: Shop) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": shop.settings.registry_url}) as registry:
        yield registry


def test_every_successful_write_is_in_its_topic(
    shop: Shop, operator: httpx.Client, registry: SchemaRegistryClient
) -> None:
    """Reads what the tests before have written, with a client that shares no code with the shop."""
    while len(shop.positions) < 50:
        put_product(operator, new_sku())
    correlated = operator.put(
        f"/v1/products/{new_sku()}",
        json={"name": "Mug", "price": price(100), "stock": 1},
        headers={"X-Correlation-ID": "till-test-1"},
    )
    shop.wait_until_published()
    eventually(lambda: not shop.fetch("order", "SELECT FROM outbox LIMIT 1"), "orders are published as well")
    records = {topic: shop.topic(topic) for topic in ("cart.events", "stock.events", "order.events")}
    for position in shop.positions:
        stream_id, _, version = position.rpartition("@")
        seen = versions(records[f"{stream_id.partition(':')[0]}.events"], stream_id)
        assert seen == list(range(1, len(seen) + 1)), stream_id
        assert int(version) <= len(seen), f"{position} was answered with success and is not in the topic"

    deserialize = AvroDeserializer(registry)
    for topic, of_topic in records.items():
        for record in of_topic:
            assert [name for name, _ in record.headers] == HEADERS
            assert record.key == record.header("ce_subject").encode()
            assert record.value
            magic, schema_id = struct.unpack_from(">bI", record.value)
            assert magic == 0
            schema = json.loads(registry.get_schema(schema_id).schema_str or "")
            assert record.header("ce_type") == schema["name"]
            assert deserialize(record.value, SerializationContext(topic, MessageField.VALUE))
    [listed] = [r for r in records["stock.events"] if r.header("ce_correlationid") == "till-test-1"]
    assert f"{listed.header('ce_subject')}@1" == correlated.headers["Event-Position"]
    assert listed.header("ce_source") == "/till-roll/catalog"
    assert listed.header("ce_actor").startswith("operator-")


def test_the_latest_document_of_a_product_is_in_the_topic_under_its_sku(
    shop: Shop, operator: httpx.Client, registry: SchemaRegistryClient
) -> None:
    product = put_product(operator, new_sku(), 100)
    put_product(operator, product.sku, 200)
    shop.wait_until_published()
    deserialize = AvroDeserializer(registry)
    [*_, latest] = [r for r in shop.topic("catalog.products") if r.key == product.sku.encode()]
    assert deserialize(latest.value, SerializationContext("catalog.products", MessageField.VALUE)) == {
        "sku": product.sku,
        "name": "Enamel mug ☕",
        "price": price(200),
        "withdrawn": False,
        "version": 2,
    }
