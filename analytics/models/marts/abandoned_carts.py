"""Abandoned carts: session windows of what a shopper did, each ended by half an hour without a move.

Whether that time has passed for the newest session depends on when one looks, and no clock is read here. A row says
from when on its cart counts as abandoned; readers compare that with their own clock.

Spark's `session_window` would give the moves of each session. A row also needs what is in the cart when the session
ends, which depends on the moves of all sessions before: so sessions are found in the array of all moves.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.definition import table
from analytics.models.intermediate.cart_lines import currency, lines_after, pieces, value
from analytics.models.scopes.shopping import SHOPPING, affected_carts

GAP_MINUTES = 30


@table(key=("cart_id", "session"), unit="cart_id", scope=SHOPPING, affected=affected_carts, time="started_at")
def abandoned_carts(cart_histories: DataFrame) -> DataFrame:
    """One row per visit that ended with something in the cart. Abandoned once `abandoned_at` has passed."""
    visits = cart_histories.select(
        "cart_id",
        "customer_id",
        "checked_out_at",
        sf.size(_ends(sf.col("moves"))).alias("visits"),
        sf.posexplode(_sessions(sf.col("moves"), _ends(sf.col("moves")))).alias("at", "session"),
    )
    left = visits.select("*", "session.*").where("NOT bought AND size(lines) > 0")
    return left.select(
        "cart_id",
        (sf.col("at") + 1).alias("session"),
        "customer_id",
        "started_at",
        "last_activity_at",
        (sf.col("last_activity_at") + sf.make_dt_interval(mins=sf.lit(GAP_MINUTES))).alias("abandoned_at"),
        "moves",
        "lines",
        pieces(sf.col("lines")).alias("pieces"),
        value(sf.col("lines")).alias("value"),
        currency(sf.col("lines")).alias("currency"),
        (sf.col("at") + 1 < sf.col("visits")).alias("came_back"),
        sf.col("checked_out_at").isNotNull().alias("bought_later"),
    )


def _ends(moves: Column) -> Column:
    """Positions of moves that nothing followed for longer than the gap, and of the last move."""
    gap_ms = GAP_MINUTES * 60_000
    return sf.filter(
        sf.transform(moves, lambda _move, n: n),
        lambda n: (n == sf.size(moves) - 1) | (_at(moves, n + 1) - _at(moves, n) > gap_ms),
    )


def _sessions(moves: Column, ends: Column) -> Column:
    def session(end: Column, n: Column) -> Column:
        start = sf.when(n == 0, sf.lit(0)).otherwise(sf.get(ends, n - 1) + 1)
        return sf.struct(
            sf.get(moves, start)["at"].alias("started_at"),
            sf.get(moves, end)["at"].alias("last_activity_at"),
            (end - start + 1).alias("moves"),
            lines_after(sf.slice(moves, 1, end + 1)).alias("lines"),
            (sf.get(moves, end)["kind"] == "CartCheckedOut").alias("bought"),
        )

    return sf.transform(ends, session)


def _at(moves: Column, n: Column) -> Column:
    return sf.unix_millis(sf.get(moves, n)["at"])
