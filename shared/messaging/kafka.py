"""Turns settings into the options of Kafka clients: producers, consumers and the admin client."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.helpers import create_ssl_context

from shared.errors import OperatorError
from shared.settings import Settings

# A process without logging (the command line) reports the final error, not each of aiokafka's retries.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())


def client_options(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap,
        "security_protocol": settings.kafka_security_protocol,
    }
    if "SSL" in settings.kafka_security_protocol:
        options["ssl_context"] = _ssl_context(settings)
    if "SASL" in settings.kafka_security_protocol:
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism
        options["sasl_plain_username"] = settings.kafka_sasl_username
        options["sasl_plain_password"] = settings.kafka_sasl_password.get_secret_value()
    return options


@asynccontextmanager
async def open_admin(settings: Settings, request_timeout_ms: int = 10_000) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**client_options(settings), request_timeout_ms=request_timeout_ms)
    try:
        with kafka_errors(settings):
            await admin.start()
            yield admin
    finally:
        await admin.close()


@contextmanager
def kafka_errors(settings: Settings) -> Iterator[None]:
    """Turns an error of Kafka within the block into one that tells an operator what to do."""
    try:
        yield
    except KafkaError as error:
        raise OperatorError(
            f"Kafka at {settings.kafka_bootstrap} does not answer: {error}",
            "Locally: till up. Elsewhere: check TILL_KAFKA_BOOTSTRAP and the TILL_KAFKA_SASL_ settings.",
        ) from error


def _ssl_context(settings: Settings) -> Any:
    try:
        return create_ssl_context(
            cafile=settings.kafka_ssl_cafile,
            certfile=settings.kafka_ssl_certfile,
            keyfile=settings.kafka_ssl_keyfile,
        )
    except OSError as error:
        raise OperatorError(
            f"The certificates for Kafka cannot be used: {error}",
            "Check TILL_KAFKA_SSL_CAFILE, TILL_KAFKA_SSL_CERTFILE and TILL_KAFKA_SSL_KEYFILE.",
        ) from error
