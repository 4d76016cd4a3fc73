"""What the tests of the lake share: one Spark, a press for events of the shop, an empty lake, and a filled one."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.ingest.stream import ingest_available
from analytics.tables import create_missing
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from shared.settings import Settings
from tests.roll import Press, Told, shopping

NewLake = Callable[[], Settings]


@pytest.fixture(scope="session")
def stack_environment() -> Iterator[dict[str, str]]:
    """Servers of the lake's own: what is sent here, poison among it, is no other test's business."""
    with throwaway() as environment:
        asyncio.run(up(settings_of(environment), servers_only=True))
        yield environment


@pytest.fixture(scope="session")
def stack(stack_environment: dict[str, str]) -> Settings:
    return settings_of(stack_environment)


@pytest.fixture(scope="session")
def press(stack: Settings) -> Press:
    """Sends events to the topics, as the relay would."""
    return Press(stack)


@pytest.fixture(scope="session")
def new_lake(stack: Settings, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NewLake:
    """Makes a lake of its own, with empty tables, over the topics that all tests share."""
    template = stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("lake") / "template")})
    create_missing(spark, template)

    def make() -> Settings:
        folder = tmp_path_factory.mktemp("lake") / "lake"
        shutil.copytree(Path(template.lake), folder)
        return stack.model_copy(update={"lake": str(folder)})

    return make


@pytest.fixture(scope="session")
def story(press: Press) -> list[Told]:
    """Sixty carts and what became of them, in the topics."""
    told = shopping(60)
    press.send(told)
    return told


@pytest.fixture(scope="session")
def filled_lake(spark: SparkSession, new_lake: NewLake, story: list[Told]) -> Settings:
    """Has ingested the story (and whatever else was in the topics). To be read, not to be changed."""
    settings = new_lake()
    ingest_available(spark, settings)
    return settings
