"""The Spark session: its configuration fits the master, and a missing Java or jar is explained."""

import os
from pathlib import Path

import pytest

from analytics.runtime.session import configuration, local_cores, parse_config
from infra.lake.spark import open_spark
from infra.settings import Settings
from shared.errors import OperatorError

PARTITIONS = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")


def test_more_settings_of_spark_are_quoted_as_in_a_shell() -> None:
    found = parse_config("spark.a=1 'spark.b=two words' spark.c=x=y")
    assert found == {"spark.a": "1", "spark.b": "two words", "spark.c": "x=y"}


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[4]", 4),
        ("local[4,3]", 4),
        ("local[*]", os.cpu_count()),
        ("spark://host:7077", None),
        ("k8s://https://host", None),
    ],
)
def test_a_local_master_says_how_many_cores_it_uses(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_a_local_spark_has_as_many_partitions_as_cores_and_at_least_two() -> None:
    for master, partitions in {"local": "2", "local[2]": "2", "local[8]": "8"}.items():
        config = configuration(Settings(spark_master=master), [])
        assert [config[name] for name in PARTITIONS] == [partitions, partitions]


def test_a_cluster_keeps_the_defaults_for_partitions_and_fetches_the_jars(tmp_path: Path) -> None:
    config = configuration(Settings(spark_master="spark://host:7077"), [tmp_path / "a.jar", tmp_path / "b.jar"])
    assert not set(PARTITIONS) & config.keys()
    assert config["spark.jars"] == f"{tmp_path}/a.jar,{tmp_path}/b.jar"
    assert "spark.driver.host" not in config


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_a_setting_of_the_operator_overrides_every_other(master: str) -> None:
    settings = Settings(spark_master=master, spark_config="spark.sql.shuffle.partitions=64")
    assert configuration(settings, [])["spark.sql.shuffle.partitions"] == "64"


def test_without_java_the_session_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="Java 17 or newer is needed"):
        open_spark(Settings(java_home=tmp_path))


def test_without_jars_the_session_says_how_to_install_them(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="files of spark are missing") as refusal:
        open_spark(Settings(cache=tmp_path))
    assert refusal.value.hint == "till install"


def test_the_lake_is_in_the_home_unless_a_setting_moves_it(tmp_path: Path) -> None:
    assert Settings(home=tmp_path).lake == str(tmp_path / "lake")
    assert Settings(home=tmp_path, lake="s3a://till/lake").lake == "s3a://till/lake"
