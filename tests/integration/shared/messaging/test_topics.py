"""Topics as code: missing topics are created; those that differ are reported and not altered."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from infra.settings import Settings
from shared.messaging.topics import Drift, Topic, compare_topics, declared_topics, ensure_topics
from tests.till import Till, eventually

EVENTS = Topic(name="", about="Of this test.", partitions=2, cleanup="delete", retention_ms=-1)


class Cluster:
    """Inspects the cluster with another client library than the code under test."""

    def __init__(self, settings: Settings) -> None:
        self._admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap})

    def partitions(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=10).topics[topic].partitions)

    def config(self, topic: str) -> dict[str, str]:
        [answer] = self._admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        return {name: entry.value for name, entry in answer.result(timeout=10).items()}

    @contextmanager
    def retention(self, topic: str, value: str) -> Iterator[None]:
        before = self.config(topic)["retention.ms"]
        self._set_retention(topic, value)
        try:
            yield
        finally:
            self._set_retention(topic, before)

    def _set_retention(self, topic: str, value: str) -> None:
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        [answer] = self._admin.incremental_alter_configs([resource]).values()
        answer.result(timeout=10)


@pytest.fixture
def cluster(stack: Settings) -> Cluster:
    return Cluster(stack)


@pytest.fixture
def topic() -> Topic:
    return replace(EVENTS, name=f"test.{uuid4()}")


def test_every_declared_topic_exists_after_till_up(cluster: Cluster, stack_environment: dict[str, str]) -> None:
    ran = Till(stack_environment)("topics", "--json")

    assert ran.code == 0
    assert {topic["name"] for topic in ran.document["declared"]} >= {
        *("cart.events", "order.events", "payment.events", "stock.events", "catalog.products", "fraud.alerts"),
        *("catalog.dlq", "cart.dlq", "order.dlq", "payment.dlq"),
    }
    assert (ran.document["missing"], ran.document["drift"]) == ([], [])

    assert cluster.partitions("cart.events") == 6
    events = cluster.config("cart.events")
    assert (events["cleanup.policy"], events["retention.ms"]) == ("delete", "-1")
    assert cluster.config("catalog.products")["cleanup.policy"] == "compact"


def known_to_the_broker(stack: Settings, topic: Topic) -> None:
    """Waits for the broker, which learns of a new topic after its creator does."""
    eventually(lambda: not asyncio.run(compare_topics(stack, [topic])).missing, "the broker knows it")


def test_a_missing_topic_is_created_as_declared(stack: Settings, topic: Topic) -> None:
    assert [missing.name for missing in asyncio.run(compare_topics(stack, [topic])).missing] == [topic.name]

    assert asyncio.run(ensure_topics(stack, [topic])) == []

    known_to_the_broker(stack, topic)
    assert asyncio.run(compare_topics(stack, [topic])).agrees
    assert asyncio.run(ensure_topics(stack, [topic])) == []


def test_a_topic_that_differs_from_its_declaration_is_reported_and_not_altered(
    stack: Settings, cluster: Cluster, topic: Topic
) -> None:
    asyncio.run(ensure_topics(stack, [topic]))
    known_to_the_broker(stack, topic)
    wanted = replace(topic, partitions=3, retention_ms=60_000)

    drift = asyncio.run(ensure_topics(stack, [wanted]))

    assert drift == [
        Drift(topic.name, "partitions", declared="3", actual="2"),
        Drift(topic.name, "retention.ms", declared="60000", actual="-1"),
    ]
    assert cluster.partitions(topic.name) == 2
    assert cluster.config(topic.name)["retention.ms"] == "-1"


def test_till_topics_fails_if_a_topic_differs_from_its_declaration(
    cluster: Cluster, stack_environment: dict[str, str]
) -> None:
    till = Till(stack_environment)
    with cluster.retention("fraud.alerts", "1000"):
        ran = till("topics")
        assert ran.code == 1
        assert "retention.ms is 1000, declared -1" in " ".join(ran.out.split())
        again = till("up", "--servers-only")
        assert again.code == 0
        assert "topic drift: fraud.alerts: retention.ms is 1000, declared -1" in again.err
        assert till("topics").code == 1
    assert till("topics").code == 0


def test_an_unreachable_kafka_cluster_is_reported(stack_environment: dict[str, str]) -> None:
    ran = Till(stack_environment)("topics", TILL_KAFKA_BOOTSTRAP="127.0.0.1:1")

    assert ran.code == 1
    assert ran.err.startswith("error: Kafka at 127.0.0.1:1 does not answer")
    assert "Traceback" not in ran.err


def test_a_topic_with_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="retention_hours"):
        declared_topics("[defaults]\npartitions = 1\n[topics.a]\nretention_hours = 1\n")
