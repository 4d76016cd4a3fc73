"""Lambda's batch layer: computes every gold table from bronze, at one cut, into `batch.*`."""

import time
from collections.abc import Callable, Sequence

from analytics.incremental.definition import GoldTable
from analytics.incremental.merge import own_session
from analytics.incremental.refresh import recompute
from analytics.lake import Lake
from analytics.log.commits import BatchCommit
from analytics.log.cut import Cut
from analytics.log.progress import require_cut
from analytics.models import GOLD
from analytics.serving.silver_rebuild import rebuild_silver


def recompute_batch_layer(
    lake: Lake,
    progress: Callable[[str], None] = lambda _line: None,
    tables: Sequence[GoldTable] = GOLD,
) -> Cut:
    """Computes each table in one commit, which carries the cut. The speed layer then starts again from it."""
    cut = require_cut(lake)
    lake = lake.in_session(own_session(lake.spark))
    progress("reading bronze from the beginning")
    with rebuild_silver(lake, cut, "batch") as inputs:
        for table in tables:
            started = time.monotonic()
            recompute(lake, f"batch.{table.name}", table, inputs, BatchCommit(cut, table.version))
            progress(f"batch.{table.name}: recomputed ({time.monotonic() - started:.1f} s)")
    return cut
