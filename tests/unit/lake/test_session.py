"""What stands between the settings and a Spark session is told as what to do about it."""

from pathlib import Path

import pytest

from analytics.session import given
from infra.spark import open_spark
from shared.errors import OperatorError
from shared.settings import Settings


def test_more_settings_of_spark_are_quoted_as_in_a_shell() -> None:
    settings = Settings(spark_config="spark.a=1 'spark.b=two words' spark.c=x=y")
    assert given(settings) == {"spark.a": "1", "spark.b": "two words", "spark.c": "x=y"}


def test_without_java_it_is_said_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="Java 17 or newer is needed"):
        open_spark(Settings(java_home=tmp_path))


def test_without_jars_it_is_said_how_to_install_them(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="files of spark are missing") as refusal:
        open_spark(Settings(cache=tmp_path))
    assert refusal.value.hint == "till install"


def test_the_lake_is_in_the_home_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    assert Settings(home=tmp_path).lake == str(tmp_path / "lake")
    assert Settings(home=tmp_path, lake="s3a://till/lake").lake == "s3a://till/lake"
