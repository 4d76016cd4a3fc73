"""Asks Kafka about topics: their ids, and the first and the next offset of each partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from analytics.log.offsets import Offsets
from analytics.runtime.kafka_options import java_options
from analytics.settings import LakeSettings
from shared.errors import OperatorError


@dataclass(frozen=True)
class Topics:
    ids: Mapping[str, str]
    beginnings: Offsets
    ends: Offsets


def describe_topics(spark: SparkSession, settings: LakeSettings, names: Iterable[str]) -> Topics:
    """Describes topics with Spark's Java client: aiokafka, with which the services work, returns no topic ids."""
    jvm: Any = spark.sparkContext._jvm
    options = jvm.java.util.HashMap()
    for key, value in java_options(settings).items():
        options.put(key, value)
    options.put("request.timeout.ms", "10000")
    options.put("default.api.timeout.ms", "15000")
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(options)
    try:
        return _describe(jvm, admin, list(names))
    except Exception as error:
        raise OperatorError(
            f"Kafka at {settings.kafka_bootstrap} does not describe its topics: {_cause(error)}",
            "Locally: till up. Elsewhere: check the TILL_KAFKA_ settings, and that the topics are there: till topics.",
        ) from error
    finally:
        admin.close()


def _describe(jvm: Any, admin: Any, names: list[str]) -> Topics:
    described = admin.describeTopics(names).allTopicNames().get()
    partitions = {name: range(described[name].partitions().size()) for name in names}

    def offsets(spec: Any) -> Offsets:
        wanted = jvm.java.util.HashMap()
        for name, numbers in partitions.items():
            for number in numbers:
                wanted.put(jvm.org.apache.kafka.common.TopicPartition(name, number), spec)
        found = admin.listOffsets(wanted).all().get()
        answer: dict[str, dict[str, int]] = {name: {} for name in names}
        for partition in wanted:
            answer[partition.topic()][str(partition.partition())] = found[partition].offset()
        return answer

    spec = jvm.org.apache.kafka.clients.admin.OffsetSpec
    ids = {name: described[name].topicId().toString() for name in names}
    return Topics(ids, offsets(spec.earliest()), offsets(spec.latest()))


def _cause(error: Exception) -> str:
    return str(getattr(error, "java_exception", error)).splitlines()[0]
