"""Settings become the options of Kafka clients, for the local cluster and for managed ones."""

import ssl
from pathlib import Path

import pytest

from infra.settings import Settings
from shared.errors import OperatorError
from shared.messaging.kafka import client_options


def test_the_local_kafka_cluster_needs_addresses_only() -> None:
    assert client_options(Settings.load(kafka_brokers=3, kafka_port=9092)) == {
        "bootstrap_servers": "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094",
        "security_protocol": "PLAINTEXT",
    }


def test_a_managed_kafka_cluster_is_given_credentials_over_tls() -> None:
    options = client_options(
        Settings.load(
            kafka_bootstrap="broker.example:9092",
            kafka_security_protocol="SASL_SSL",
            kafka_sasl_mechanism="SCRAM-SHA-512",
            kafka_sasl_username="till",
            kafka_sasl_password="secret",
        )
    )

    context = options.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert options == {
        "bootstrap_servers": "broker.example:9092",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "till",
        "sasl_plain_password": "secret",
    }


def test_a_missing_kafka_certificate_is_reported_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as error:
        client_options(Settings.load(kafka_security_protocol="SSL", kafka_ssl_cafile=tmp_path / "absent.pem"))
    assert "TILL_KAFKA_SSL_CAFILE" in error.value.hint
