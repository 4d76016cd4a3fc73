"""One shop for all pages. Nothing else writes to it, so `till verify` checks what the pages did and nothing else."""

import subprocess
from collections.abc import Iterator

import pytest

from infra.local.throwaway import throwaway
from tests.docs.markdown import ROOT, page
from tests.docs.shell import Ran, run


@pytest.fixture(scope="package")
def shop() -> Iterator[dict[str, str]]:
    """The environment of a running shop, started as `make up` starts it once everything is installed."""
    with throwaway() as environment:
        # Spark runs for half a minute, in which Java's second compiler (C2) costs more than it gains.
        environment["TILL_SPARK_CONFIG"] = "spark.driver.extraJavaOptions='-XX:TieredStopAtLevel=1'"
        environment["TILL_MIN_POSITION_TIMEOUT"] = "1"
        up = subprocess.run(["./till", "up"], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert up.returncode == 0, up.stderr
        yield environment


@pytest.fixture(scope="package")
def tutorial(shop: dict[str, str]) -> list[Ran]:
    """The tutorial, done once. It leaves a shop with orders and a lake."""
    return run(page("docs/tutorial.md"), shop, seconds=400)
