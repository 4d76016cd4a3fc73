"""Starts the servers of the tests once per run, when a test first needs them, and stops them at the end.

They have a home of their own and free ports, so tests can run next to a running shop and next to each other.
"""

import asyncio
import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadFileScheduling

from infra.local.stack import servers, up
from infra.local.throwaway import INHERITED, settings_of, throwaway
from infra.settings import Settings
from shared.settings import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long an example takes depends on the machine, so hypothesis sets no deadline.
hypothesis_settings.register_profile("till", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("till")


class ByModule(LoadFileScheduling):  # type: ignore[misc] # xdist is not typed
    """Gives all tests of a module to one worker of `make test`, and all of the lake too: starting Spark takes long."""

    def _split_scope(self, nodeid: str) -> str:
        return "lake" if "/analytics/" in nodeid else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    return ByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _uses_spark(item):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collects the sockets that PySpark leaves open, so that no later test is blamed for them."""
    if _uses_spark(item) and not (nextitem and _uses_spark(nextitem)):
        gc.collect()


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def own_settings() -> None:
    """Removes the developer's own TILL_ variables: tests must not depend on them."""
    for name in [name for name in os.environ if name.startswith(PREFIX) and name not in INHERITED]:
        del os.environ[name]


@pytest.fixture(scope="session")
def stack_environment() -> Iterator[dict[str, str]]:
    """Returns the environment in which a `till` command or a process of the shop finds the stack."""
    with throwaway() as environment:
        settings = settings_of(environment)
        assert len(servers(settings)) == 3, "A .env in this folder names other servers; the tests must not use them."
        asyncio.run(up(settings, servers_only=True))
        yield environment


@pytest.fixture(scope="session")
def stack(stack_environment: dict[str, str]) -> Settings:
    """Returns the settings of running servers with all topics. Tests share them, so each uses names of its own."""
    return settings_of(stack_environment)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Starts one Spark session for all tests of a run, because that takes ten seconds, with the lake's settings."""
    from infra.lake.spark import open_spark

    # The first JIT tier only: a run of a minute never earns back what the second compiler costs.
    quick = "spark.driver.extraJavaOptions='-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m'"
    session = open_spark(Settings.load(spark_config=quick))
    yield session
    session.stop()
