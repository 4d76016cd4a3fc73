"""From settings to the options of Spark's Kafka source, and of Kafka's Java clients."""

from pathlib import Path

from shared.settings import Settings

LOGIN = "org.apache.kafka.common.security.{module} required username={user} password={password};"
MODULES = {"PLAIN": "plain.PlainLoginModule"}
SCRAM = "scram.ScramLoginModule"
FETCH_WAIT_MS = 20
"""Kafka's default is 500. A task reads one partition after the other, and in thread dumps of small batches with the
default it was mostly waiting for a fetch that waited for more messages.
"""


def java_options(settings: Settings) -> dict[str, str]:
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


def source_options(settings: Settings) -> dict[str, str]:
    options = java_options(settings) | {"fetch.max.wait.ms": str(FETCH_WAIT_MS)}
    return {f"kafka.{name}": value for name, value in options.items()}


def _certificates(settings: Settings) -> dict[str, str]:
    """As text, not as files: executors have no files of the driver's."""
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
