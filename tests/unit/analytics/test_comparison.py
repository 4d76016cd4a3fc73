"""Two tables are compared row by row and both ways: what only one has, what differs, and how often a row occurs."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from analytics.comparison import compare
from tests.unit.analytics.recomputed import kept, small

KEY = ("day", "sku")
EXPECTED = [(1, "MUG", 3), (1, "POT", 5), (2, "MUG", None)]


def table(spark: SparkSession, rows: list[tuple[int, str, int | None]]) -> DataFrame:
    return kept(small(spark).createDataFrame(rows, "day int, sku string, units int"))


def test_equal_tables_have_no_difference_whatever_their_order(spark: SparkSession) -> None:
    found = compare(table(spark, EXPECTED[::-1]), table(spark, EXPECTED), KEY)
    assert found.none
    assert (found.rows, found.shown) == (3, ())


def test_added_missing_and_changed_rows_are_counted_and_shown(spark: SparkSession) -> None:
    found = compare(table(spark, [(1, "MUG", 4), (2, "MUG", None), (3, "PAN", 1)]), table(spark, EXPECTED), KEY)
    assert (found.added, found.gone, found.changed) == (1, 1, 1)
    assert not found.none
    assert [(row["side"], row["day"], row["sku"], row["units"]) for row in found.shown] == [
        ("this", 1, "MUG", 4),
        ("other", 1, "MUG", 3),
        ("other", 1, "POT", 5),
        ("this", 3, "PAN", 1),
    ]


def test_a_null_is_not_a_value(spark: SparkSession) -> None:
    assert compare(table(spark, [*EXPECTED[:2], (2, "MUG", 0)]), table(spark, EXPECTED), KEY).changed == 1


@pytest.mark.parametrize("twice", ["this", "other"])
def test_a_row_that_occurs_twice_is_a_difference(spark: SparkSession, twice: str) -> None:
    once, repeated = table(spark, EXPECTED), table(spark, [*EXPECTED, EXPECTED[0]])
    found = compare(repeated, once, KEY) if twice == "this" else compare(once, repeated, KEY)
    assert not found.none


def test_columns_that_only_one_table_has_are_a_difference(spark: SparkSession) -> None:
    found = compare(table(spark, EXPECTED).drop("units"), table(spark, EXPECTED), KEY)
    assert found.columns == ("units",)
    assert not found.none
