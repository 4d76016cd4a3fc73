"""The cache of frames computes a frame once and releases its memory at the end of the block."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics.runtime.frame_cache import FrameCache


def cached_rdds(spark: SparkSession) -> set[int]:
    context: Any = spark.sparkContext._jsc
    return set(context.getPersistentRDDs().keys())


@pytest.mark.timeout(120)
def test_kept_frames_hold_their_rows_until_the_block_ends(spark: SparkSession) -> None:
    before = cached_rdds(spark)
    with FrameCache() as cache:
        frame = cache.keep(spark.range(3).selectExpr("id", "rand() AS chance"))
        assert frame.collect() == frame.collect(), "the random numbers are drawn once"
        assert cached_rdds(spark) - before
    assert cached_rdds(spark) <= before


def test_a_value_is_made_once_for_each_key() -> None:
    made: list[str] = []
    cache = FrameCache()
    for key in ("a", "b", "a"):
        cache.once(key, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == ["a", "b"]
