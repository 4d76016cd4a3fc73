"""Which minutes to look at, as a filter of literals: Delta skips the files that have nothing of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

MINUTE = timedelta(minutes=1)
MOST = 64
"""More spans than that cost more to plan than they save."""

Span = tuple[datetime, datetime]
"""From, inclusive; to, exclusive."""


def minutes_of(time: str) -> Column:
    """An aggregate: the minutes in which something happened."""
    return sf.sort_array(sf.collect_set(sf.date_trunc("minute", time)))


def spans(minutes: DataFrame) -> list[Span]:
    """Of a frame whose one column is minutes: as few spans as cover them all."""
    found = minutes.toDF("minute").distinct().where("minute IS NOT NULL").collect()
    return merged((row.minute, row.minute + MINUTE) for row in found)


def merged(found: Iterable[Span], most: int = MOST) -> list[Span]:
    """Neighbours in one; and where there are too many, those that are nearest to each other."""
    joined: list[Span] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return _bridged(joined, most)


def within(column: str, wanted: Sequence[Span]) -> Column:
    if not wanted:
        return sf.lit(False)
    return reduce(or_, ((sf.col(column) >= start) & (sf.col(column) < end) for start, end in wanted))


def _bridged(joined: list[Span], most: int) -> list[Span]:
    if len(joined) <= most:
        return joined
    gaps = sorted(range(1, len(joined)), key=lambda n: joined[n][0] - joined[n - 1][1], reverse=True)
    starts = [0, *sorted(gaps[: most - 1]), len(joined)]
    return [(joined[a][0], max(end for _, end in joined[a:b])) for a, b in pairwise(starts)]
