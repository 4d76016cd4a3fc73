"""Affected customers and payment tokens, and their windows: the scope of the tables about fraud."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.fraud.facts import SUBJECT
from analytics.fraud.windows import hopping_window
from analytics.incremental.scope import Affected, Frames, Ids, Scope, Staged
from analytics.models.staging.payment_facts import RULES, payment_facts

WINDOW = (*SUBJECT, "window_start")
INDEX = "fraud_features"


def affected_windows(found: Affected) -> DataFrame:
    """Windows of subjects with new facts that end after the first of these.

    Later windows change too: what a customer usually spends is derived from all earlier purchases.
    """
    since = found.new["payment_facts"].groupBy(*SUBJECT).agg(sf.min("at").alias("since"))
    windows = found.after["payment_facts"].select(*SUBJECT, hopping_window(RULES).alias("window")).distinct()
    ends_later = sf.unix_millis("window.end") > sf.col("since")
    later = windows.join(sf.broadcast(since), on=[*SUBJECT], how="inner").where(ends_later)
    return later.select(*SUBJECT, sf.col("window.start").alias("window_start"))


def _subjects(new: Staged) -> DataFrame:
    return new["payment_facts"].select(*SUBJECT).distinct()


def _affected_ids(new: Staged, _rows: Staged) -> Ids:
    return Ids({"subjects": _subjects(new)})


def _restricted_to(rows: Staged, ids: Ids) -> Staged:
    facts = rows["payment_facts"]
    kept = facts.join(sf.broadcast(ids["subjects"]), on=[*SUBJECT], how="left_semi").select(*facts.columns)
    return Staged({"payment_facts": kept})


def _minutes(new: Staged, index: Frames) -> Frames:
    windows = index[INDEX].join(sf.broadcast(_subjects(new)), on=[*SUBJECT], how="left_semi")
    return {"payment_facts": windows.select(sf.explode("minutes"))}


SUBJECTS = Scope(
    staging=(payment_facts,),
    affected_ids=_affected_ids,
    restricted_to=_restricted_to,
    index=(INDEX,),
    minutes=_minutes,
)
