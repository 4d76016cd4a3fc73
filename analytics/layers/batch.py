"""Lambda's batch layer: every gold table computed from bronze, at one cut, into `batch.*`."""

import time
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from analytics.cut import Cut, present
from analytics.gold import GOLD
from analytics.gold.definition import Table
from analytics.layers.advancing import fill
from analytics.layers.rebuilding import rebuilt
from analytics.layers.writing import own_session
from shared.errors import OperatorError
from shared.settings import Settings


def recompute(
    spark: SparkSession,
    settings: Settings,
    progress: Callable[[str], None] = lambda _line: None,
    tables: Sequence[Table] = GOLD,
) -> Cut:
    """Each in one commit, which says the cut. The speed layer begins anew from it as soon as it next runs."""
    cut = present(settings)
    if cut is None:
        raise OperatorError("There is nothing in the lake yet.", "Fill it with: till lake run")
    session = own_session(spark)
    progress("reading bronze from the beginning")
    with rebuilt(session, settings, cut, "batch") as silver:
        for table in tables:
            started = time.monotonic()
            fill(session, settings, f"batch.{table.name}", "batch", table, silver, cut)
            progress(f"batch.{table.name}: recomputed ({time.monotonic() - started:.1f} s)")
    return cut
