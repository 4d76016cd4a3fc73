"""Other software reads and writes our messages: Confluent's client, Apache's Python library, and Spark."""

import json
from collections.abc import Iterator
from io import BytesIO

import avro.io
import avro.schema
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, topic_record_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from analytics.ingest.avro import END, decode_marked, is_whole, upcast_event
from infra.settings import Settings
from shared.schemas.codec import schema_id_of
from shared.schemas.contract.event_schemas import load_schemas
from tests.golden import Golden, archive
from tests.integration.shared.tallies import Added, Tallies, add, added_schema, handled, relayed

SCHEMAS = load_schemas()
ARCHIVE = archive(SCHEMAS)

# Apache's Python library ignores aliases when it reads, and returns the default. Its users read with the schema that
# wrote the event, and rename the field themselves.
NO_ALIASES = {"cart/ItemRemoved.v2": {"sku": "MUG-350", "at": 1767268800000, "pieces_removed": 0}}


@pytest.fixture
def client(stack: Settings) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": stack.registry_url}) as client:
        yield client


@pytest.mark.anyio
async def test_confluents_client_reads_a_message_that_our_relay_sent(
    tallies: Tallies, client: SchemaRegistryClient
) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(7))
        await relayed(runtime)
    [record] = tallies.records()
    read = AvroDeserializer(client)
    assert read(record.value, SerializationContext(tallies.topic, MessageField.VALUE)) == {"amount": 7}


@pytest.mark.anyio
async def test_confluents_client_reads_our_message_with_a_newer_schema_of_its_own(
    tallies: Tallies, client: SchemaRegistryClient
) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(7))
        await relayed(runtime)
    [record] = tallies.records()
    read = AvroDeserializer(client, added_schema(tallies.topic, version=2).text)
    value = read(record.value, SerializationContext(tallies.topic, MessageField.VALUE))
    assert value == {"amount": 7, "by": "nobody"}


@pytest.mark.anyio
async def test_a_message_that_confluents_client_wrote_is_decoded(
    tallies: Tallies, client: SchemaRegistryClient
) -> None:
    write = AvroSerializer(
        client,
        tallies.schemas.all[0].text,
        conf={"auto.register.schemas": False, "subject.name.strategy": topic_record_subject_name_strategy},
    )
    value = write({"amount": 9}, SerializationContext(tallies.topic, MessageField.VALUE))
    async with tallies.opened() as runtime:
        assert await runtime.decoder.decode(value) == Added(9)
        await handled(runtime, "tally:a", add(9))
        [ours] = await runtime.store.history("tally:a")
    assert value == ours.value, "an event has the same bytes, whichever client writes it"


@pytest.mark.anyio
async def test_confluents_client_finds_our_schemas_by_subject_and_id(
    tallies: Tallies, client: SchemaRegistryClient
) -> None:
    async with tallies.opened() as runtime:
        await handled(runtime, "tally:a", add(7))
        [event] = await runtime.store.history("tally:a")
    schema = tallies.schemas.all[0]
    latest = client.get_latest_version(schema.subject)
    assert latest.schema_id == schema_id_of(event.value)
    assert json.loads(latest.schema.schema_str or "") == schema.definition
    assert client.register_schema(schema.subject, Schema(schema.text, "AVRO")) == latest.schema_id
    assert client.lookup_schema(schema.subject, Schema(schema.text, "AVRO")).schema_id == latest.schema_id


@pytest.mark.parametrize("golden", [g for g in ARCHIVE if g.record == g.schema.record], ids=str)
def test_apaches_python_library_reads_old_events_as_the_newest_version(golden: Golden) -> None:
    newest = SCHEMAS.newest(golden.schema.record)
    reader = avro.io.DatumReader(avro.schema.parse(golden.schema.text), avro.schema.parse(newest.text))
    value = reader.read(avro.io.BinaryDecoder(BytesIO(golden.body)))
    assert value == NO_ALIASES.get(str(golden), golden.value)


def test_spark_reads_every_released_event_version_as_intended_today(spark: SparkSession) -> None:
    names = [str(golden) for golden in ARCHIVE]
    bodies = spark.createDataFrame(
        [tuple(bytearray(golden.body) for golden in ARCHIVE)], ", ".join(f"`{name}` binary" for name in names)
    )
    [row] = bodies.select(*map(_decoded_by_spark, ARCHIVE)).collect()
    assert row.asDict(recursive=True) == {str(golden): golden.value for golden in ARCHIVE}


def _decoded_by_spark(golden: Golden) -> Column:
    event = decode_marked(sf.concat(sf.col(f"`{golden}`"), sf.lit(END)), golden.schema, SCHEMAS)
    return sf.when(is_whole(event), upcast_event(event, golden.schema.record, SCHEMAS)).alias(str(golden))
