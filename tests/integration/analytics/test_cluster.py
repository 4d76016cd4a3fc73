"""The ingest on a real cluster: only a setting differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.catalog import TOPICS
from infra.settings import Settings
from tests.faults.lake_books import rows
from tests.integration.analytics.cluster import spark_cluster
from tests.integration.analytics.conftest import NewLake
from tests.roll import ShopEvent


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_ingest_runs_on_a_cluster_of_two_workers(
    stack: Settings, stack_environment: dict[str, str], new_lake: NewLake, story: list[ShopEvent], tmp_path: Path
) -> None:
    lake = new_lake()
    with spark_cluster(stack, tmp_path) as master:
        environment = stack_environment | {
            "TILL_LAKE": lake.settings.lake,
            "TILL_SPARK_MASTER": master,
            "TILL_SPARK_DRIVER_MEMORY": "1g",
            "TILL_SPARK_CONFIG": "spark.driver.host=127.0.0.1 spark.executor.memory=640m",
            "PYTHONPATH": os.getcwd(),
        }
        driver = [sys.executable, "-m", "tests.faults.lake_driver"]
        ran = subprocess.run(driver, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=500)
        assert ran.returncode == 0, ran.stderr[-3000:]
        executors = list(tmp_path.glob("work-*/app-*/*/stderr"))
    assert len({log.parents[2].name for log in executors}) == 2, "both workers had a part in it"
    found = {row["event_id"] for table in TOPICS.values() for row in rows(lake.settings, f"silver.{table}")}
    assert {shop_event.event_id for shop_event in story} <= found
