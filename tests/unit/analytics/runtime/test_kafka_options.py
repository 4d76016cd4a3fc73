"""The settings of Kafka as options of its Java client: Spark reaches the same clusters as the services."""

from pathlib import Path

from pydantic import SecretStr

from analytics.runtime.kafka_options import java_options, source_options
from infra.settings import Settings


def test_a_local_cluster_needs_no_more_than_its_address() -> None:
    settings = Settings(kafka_bootstrap="broker:9092")
    assert java_options(settings) == {"bootstrap.servers": "broker:9092", "security.protocol": "PLAINTEXT"}
    assert source_options(settings)["kafka.bootstrap.servers"] == "broker:9092"


def test_a_managed_cluster_gets_user_and_password() -> None:
    settings = Settings(
        kafka_security_protocol="SASL_SSL",
        kafka_sasl_mechanism="PLAIN",
        kafka_sasl_username="$ConnectionString",
        kafka_sasl_password=SecretStr('with "quotes" and \\'),
    )
    options = java_options(settings)
    assert options["sasl.mechanism"] == "PLAIN"
    assert options["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="$ConnectionString" password="with \\"quotes\\" and \\\\";'
    )
    scram = java_options(settings.model_copy(update={"kafka_sasl_mechanism": "SCRAM-SHA-512"}))
    assert "scram.ScramLoginModule" in scram["sasl.jaas.config"]


def test_certificates_are_passed_as_text(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"the {name}")
    options = java_options(
        Settings(
            kafka_security_protocol="SSL",
            kafka_ssl_cafile=tmp_path / "ca",
            kafka_ssl_certfile=tmp_path / "cert",
            kafka_ssl_keyfile=tmp_path / "key",
        )
    )
    assert options["ssl.truststore.certificates"] == "the ca"
    assert (options["ssl.keystore.certificate.chain"], options["ssl.keystore.key"]) == ("the cert", "the key")
