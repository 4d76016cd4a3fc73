"""Spans of time in which older events are looked for: few of them cover every minute that is wanted."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from analytics.incremental.pruning import MINUTE, merge_spans
from tests.roll import NOON


def minute(n: int) -> tuple[datetime, datetime]:
    return NOON + n * MINUTE, NOON + (n + 1) * MINUTE


def test_minutes_next_to_each_other_are_one_span() -> None:
    assert merge_spans([minute(2), minute(0), minute(1), minute(9)]) == [(NOON, NOON + 3 * MINUTE), minute(9)]


def test_too_many_spans_are_joined_across_the_smallest_gap() -> None:
    assert merge_spans([minute(0), minute(2), minute(60)], most=2) == [(NOON, NOON + 3 * MINUTE), minute(60)]


@given(st.lists(st.integers(0, 500)), st.integers(1, 5))
def test_few_spans_cover_every_minute(minutes: list[int], most: int) -> None:
    spans = merge_spans([minute(n) for n in minutes], most)
    assert len(spans) <= most
    assert all(any(start <= NOON + n * MINUTE < end for start, end in spans) for n in minutes)
    assert sum(((end - start) for start, end in spans), timedelta()) >= MINUTE * len(set(minutes))
