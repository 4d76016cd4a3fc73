"""Turns settings into the options of Spark's Kafka source and of Kafka's Java clients."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from analytics.settings import LakeSettings

LOGIN = "org.apache.kafka.common.security.{module} required username={user} password={password};"
MODULES = {"PLAIN": "plain.PlainLoginModule"}
SCRAM = "scram.ScramLoginModule"
FETCH_WAIT_MS = 20
"""Milliseconds that a broker waits for more messages; Kafka's default is 500. A task reads one partition after the
other, and in thread dumps of small batches it was mostly waiting for fetches that waited for more.
"""


def java_options(settings: LakeSettings) -> dict[str, str]:
    options = {
        "bootstrap.servers": settings.kafka_bootstrap,
        "security.protocol": settings.kafka_security_protocol,
    }
    if "SSL" in settings.kafka_security_protocol:
        options |= _certificates(settings)
    if "SASL" in settings.kafka_security_protocol:
        options["sasl.mechanism"] = settings.kafka_sasl_mechanism
        options["sasl.jaas.config"] = LOGIN.format(
            module=MODULES.get(settings.kafka_sasl_mechanism, SCRAM),
            user=_quoted(settings.kafka_sasl_username),
            password=_quoted(settings.kafka_sasl_password.get_secret_value()),
        )
    return options


Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)


def from_kafka(reader: Reader, settings: LakeSettings, topics: Iterable[str]) -> Reader:
    """Prepares a batch or streaming read of these topics, with headers. Offsets are the caller's to choose."""
    kafka = reader.format("kafka").options(**source_options(settings))
    return kafka.option("subscribe", ",".join(topics)).option("includeHeaders", "true")


def source_options(settings: LakeSettings) -> dict[str, str]:
    options = java_options(settings) | {"fetch.max.wait.ms": str(FETCH_WAIT_MS)}
    return {f"kafka.{name}": value for name, value in options.items()}


def _certificates(settings: LakeSettings) -> dict[str, str]:
    """Passes certificates as text: executors cannot read files of the driver."""
    options: dict[str, str] = {}
    if settings.kafka_ssl_cafile:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(settings.kafka_ssl_cafile)}
    if settings.kafka_ssl_certfile and settings.kafka_ssl_keyfile:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _pem(settings.kafka_ssl_certfile),
            "ssl.keystore.key": _pem(settings.kafka_ssl_keyfile),
        }
    return options


def _pem(file: Path) -> str:
    return file.read_text()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
