"""Topics as code: compares a cluster with `schemas/topics.toml`, and creates what is missing.

An existing topic that differs is reported and never altered: repartitioning breaks the order of streams, and a
shorter retention deletes history.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, for_code

from shared.errors import OperatorError
from shared.messaging.kafka import open_admin
from shared.settings import Settings

REPLICAS = 3


@dataclass(frozen=True)
class Topic:
    """A topic as declared."""

    name: str
    about: str
    partitions: int
    cleanup: Literal["delete", "compact"]
    retention_ms: int
    namespace: str = ""

    def config(self, replication: int) -> dict[str, str]:
        config = {
            "cleanup.policy": self.cleanup,
            "min.insync.replicas": str(2 if replication >= REPLICAS else 1),
        }
        if self.cleanup == "delete":
            config["retention.ms"] = str(self.retention_ms)
        return config


@dataclass(frozen=True)
class Drift:
    """A setting of an existing topic that differs from its declaration."""

    topic: str
    setting: str
    declared: str
    actual: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.actual}, declared {self.declared}"


@dataclass(frozen=True)
class TopicComparison:
    """The topics of a cluster compared with their declaration."""

    replication: int
    missing: list[Topic]
    drift: list[Drift]
    undeclared: list[str]
    """Topics of others; a cluster may be shared, so they are no fault."""

    @property
    def agrees(self) -> bool:
        return not self.missing and not self.drift


def declared_topics(text: str | None = None) -> list[Topic]:
    document = tomllib.loads(text or resources.files("schemas").joinpath("topics.toml").read_text())
    defaults: dict[str, Any] = document["defaults"]
    return [Topic(name=name, **(defaults | values)) for name, values in document["topics"].items()]


async def compare_topics(settings: Settings, topics: Iterable[Topic] | None = None) -> TopicComparison:
    async with open_admin(settings) as admin:
        return await _compare(admin, settings, list(topics or declared_topics()))


async def ensure_topics(settings: Settings, topics: Iterable[Topic] | None = None) -> list[Drift]:
    """Creates missing topics and returns how the existing ones differ from their declaration."""
    async with open_admin(settings) as admin:
        found = await _compare(admin, settings, list(topics or declared_topics()))
        if found.missing:
            await _create(admin, found.missing, found.replication)
        return found.drift


async def _compare(admin: AIOKafkaAdminClient, settings: Settings, topics: list[Topic]) -> TopicComparison:
    cluster = await admin.describe_cluster()
    # A broker that is down right now still counts: its absence must not lower the replication of a new topic.
    replication = REPLICAS if max(len(cluster["brokers"]), settings.kafka_brokers) >= REPLICAS else 1
    existing = {topic["topic"]: topic["partitions"] for topic in await admin.describe_topics()}
    names = {topic.name for topic in topics}
    configs = await _configs(admin, names & existing.keys())
    return TopicComparison(
        replication=replication,
        missing=[topic for topic in topics if topic.name not in existing],
        drift=[
            drift
            for topic in topics
            if topic.name in existing
            for drift in _differences(topic, replication, existing[topic.name], configs[topic.name])
        ],
        undeclared=sorted(name for name in existing.keys() - names if not name.startswith("_")),
    )


def _differences(
    topic: Topic, replication: int, partitions: list[dict[str, Any]], config: dict[str, str]
) -> list[Drift]:
    declared = {"partitions": str(topic.partitions), "replication": str(replication)} | topic.config(replication)
    actual = {
        "partitions": str(len(partitions)),
        "replication": str(min((len(p["replicas"]) for p in partitions), default=0)),
    } | config
    return [
        Drift(topic.name, setting, value, actual[setting])
        for setting, value in declared.items()
        if actual[setting] != value
    ]


async def _configs(admin: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    wanted = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    return {
        resource[3]: {entry[0]: entry[1] for entry in resource[4]}
        for answer in (await admin.describe_configs(wanted) if wanted else [])
        for resource in answer.resources
    }


async def _create(admin: AIOKafkaAdminClient, topics: list[Topic], replication: int) -> None:
    answer = await admin.create_topics(
        [
            NewTopic(topic.name, topic.partitions, replication, topic_configs=topic.config(replication))
            for topic in topics
        ]
    )
    for name, code, message in answer.topic_errors:
        # Another process may be creating the same ones.
        if code and for_code(code) is not TopicAlreadyExistsError:
            raise OperatorError(f"The topic {name} could not be created: {message}")
