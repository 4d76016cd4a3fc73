"""Spans of time to look at: as few as cover all that is wanted."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from analytics.gold.pruning import MINUTE, merged
from tests.roll import NOON


def minute(n: int) -> tuple[datetime, datetime]:
    return NOON + n * MINUTE, NOON + (n + 1) * MINUTE


def test_neighbours_are_one_span() -> None:
    assert merged([minute(2), minute(0), minute(1), minute(9)]) == [(NOON, NOON + 3 * MINUTE), minute(9)]


def test_too_many_spans_are_joined_where_the_gap_is_smallest() -> None:
    assert merged([minute(0), minute(2), minute(60)], most=2) == [(NOON, NOON + 3 * MINUTE), minute(60)]


@given(st.lists(st.integers(0, 500)), st.integers(1, 5))
def test_every_minute_is_covered_by_few_spans(minutes: list[int], most: int) -> None:
    spans = merged([minute(n) for n in minutes], most)
    assert len(spans) <= most
    assert all(any(start <= NOON + n * MINUTE < end for start, end in spans) for n in minutes)
    assert sum(((end - start) for start, end in spans), timedelta()) >= MINUTE * len(set(minutes))
