"""Turns the minutes of older events into a filter of literals, with which Delta skips files.

The filter is exact: index tables know every minute in which an event of a cart, an order or a customer happened. This
module runs small Spark jobs to fetch those minutes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.scope import Frames, Scope, Staged

MINUTE = timedelta(minutes=1)
MOST_SPANS = 64
"""Filters with more spans cost more to plan than they save."""

Filters = Mapping[str, Column]
"""Conditions by silver table: which rows to read of it."""
Span = tuple[datetime, datetime]
"""Start, inclusive; end, exclusive."""


def silver_filters(scope: Scope, new: Staged, index: Frames) -> Filters:
    """Tells where the older events are that matter to the new ones."""
    arrived = _names_with_rows(new)
    minutes = [frame for name, frame in scope.minutes(new, index).items() if name in arrived]
    spans = fetch_spans(reduce(DataFrame.union, minutes)) if minutes else []
    filters = dict.fromkeys(scope.silver_tables, within("event_time", spans))
    return filters | {name: filters[name] | sf.expr(sql) for name, sql in scope.always_read.items()}


def fetch_spans(minutes: DataFrame) -> list[Span]:
    """Fetches the minutes in a frame's one column, as few spans that cover them all."""
    found = minutes.toDF("minute").distinct().where("minute IS NOT NULL").collect()
    return merge_spans((row.minute, row.minute + MINUTE) for row in found)


def merge_spans(found: Iterable[Span], most: int = MOST_SPANS) -> list[Span]:
    """Joins spans that touch; where too many are left, bridges the smallest gaps."""
    joined: list[Span] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return _bridged(joined, most)


def within(column: str, spans: Sequence[Span]) -> Column:
    if not spans:
        return sf.lit(False)
    return reduce(or_, ((sf.col(column) >= start) & (sf.col(column) < end) for start, end in spans))


def _bridged(joined: list[Span], most: int) -> list[Span]:
    if len(joined) <= most:
        return joined
    gaps = sorted(range(1, len(joined)), key=lambda n: joined[n][0] - joined[n - 1][1], reverse=True)
    starts = [0, *sorted(gaps[: most - 1]), len(joined)]
    return [(joined[a][0], max(end for _, end in joined[a:b])) for a, b in pairwise(starts)]


def _names_with_rows(frames: Frames) -> set[str]:
    """Tells in one job which of the frames have rows."""
    firsts = (frame.limit(1).select(sf.lit(name).alias("name")) for name, frame in frames.items())
    return {row["name"] for row in reduce(DataFrame.unionAll, firsts).collect()}
