"""Fixtures of the lake's tests: servers of their own, a press that sends events, an empty lake and a filled one."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.ingest.stream import ingest_available
from analytics.lake import Lake, LakeFiles
from analytics.tables import create_missing
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from tests.roll import Press, ShopEvent, shopping

NewLake = Callable[[], Lake]


@pytest.fixture(scope="session")
def stack_environment() -> Iterator[dict[str, str]]:
    """Starts servers for the lake's tests alone: invalid messages are sent here, which no other test should see."""
    with throwaway() as environment:
        asyncio.run(up(settings_of(environment), servers_only=True))
        yield environment


@pytest.fixture(scope="session")
def stack(stack_environment: dict[str, str]) -> Settings:
    return settings_of(stack_environment)


@pytest.fixture(scope="session")
def press(stack: Settings) -> Press:
    """Sends events to the topics as the relay would."""
    return Press(stack)


@pytest.fixture(scope="session")
def new_lake(stack: Settings, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> NewLake:
    """Makes lakes with empty tables. All of them read the same topics."""
    template = stack.model_copy(update={"lake": str(tmp_path_factory.mktemp("lake") / "template")})
    create_missing(LakeFiles(template))

    def make() -> Lake:
        folder = tmp_path_factory.mktemp("lake") / "lake"
        shutil.copytree(Path(template.lake), folder)
        return Lake(spark, stack.model_copy(update={"lake": str(folder)}))

    return make


@pytest.fixture(scope="session")
def story(press: Press) -> list[ShopEvent]:
    """Sends sixty carts, with what became of them, to the topics."""
    shop_events = shopping(60)
    press.send(shop_events)
    return shop_events


@pytest.fixture(scope="session")
def filled_lake(new_lake: NewLake, story: list[ShopEvent]) -> Lake:
    """Ingests the story, and whatever else is in the topics. Tests only read this lake."""
    lake = new_lake()
    ingest_available(lake)
    return lake
