"""The stack of the tests: real servers, started once per run when a test first asks, gone when the run is.

In a home of its own and on free ports, so that tests run beside a shop, and beside each other.
"""

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from infra.local.stack import servers, up
from infra.local.throwaway import INHERITED, settings_of, throwaway
from shared.settings import PREFIX, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long an example takes is the machine's affair.
hypothesis_settings.register_profile("till", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("till")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _uses_spark(item):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """PySpark leaves the sockets over which it fetched rows to the collector: not to be found in another's test."""
    if _uses_spark(item) and not (nextitem and _uses_spark(nextitem)):
        gc.collect()


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def own_settings() -> None:
    """What a developer has set for a shop of theirs is none of the tests' business."""
    for name in [name for name in os.environ if name.startswith(PREFIX) and name not in INHERITED]:
        del os.environ[name]


@pytest.fixture(scope="session")
def stack_environment() -> Iterator[dict[str, str]]:
    """The environment in which a `till` command, or a process of the shop, finds the stack."""
    with throwaway() as environment:
        settings = settings_of(environment)
        assert len(servers(settings)) == 3, "A .env in this folder names servers elsewhere: tests keep off them."
        asyncio.run(up(settings, servers_only=True))
        yield environment


@pytest.fixture(scope="session")
def stack(stack_environment: dict[str, str]) -> Settings:
    """Settings of running servers, with all topics. Tests share them: use names that no other test uses."""
    return settings_of(stack_environment)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark for all tests of a run: it takes ten seconds to start. Its settings are those of the lake."""
    from infra.spark import open_spark

    # Compiled once and not twice: what runs for a minute never earns what the second compiler costs.
    quick = "spark.driver.extraJavaOptions='-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m'"
    session = open_spark(Settings.load(spark_config=quick))
    yield session
    session.stop()
