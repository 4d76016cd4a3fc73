"""Affected carts and orders: the scope of every table about shopping."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.incremental.scope import Affected, Frames, Ids, Scope, Staged
from analytics.models.intermediate.cart_histories import cart_histories
from analytics.models.intermediate.order_processes import order_processes
from analytics.models.staging.cart_moves import cart_moves
from analytics.models.staging.order_moves import order_moves
from analytics.models.staging.product_names import NAMING, product_names


def affected_carts(found: Affected) -> DataFrame:
    """Carts whose rows change: those with new events."""
    return _carts_with_new_events(found.new)


def affected_orders(found: Affected) -> DataFrame:
    """Orders whose rows change."""
    return found.ids["orders"]


def _affected_ids(new: Staged, rows: Staged) -> Ids:
    """Finds orders whose rows change, and all carts whose events are needed, those of affected orders among them."""
    orders = _orders_affected(new, rows)
    their_carts = _placed(rows).join(sf.broadcast(orders), on="order_id", how="left_semi").select("cart_id")
    return Ids({"orders": orders, "carts": _carts_with_new_events(new).union(their_carts).distinct()})


def _carts_with_new_events(new: Staged) -> DataFrame:
    return new["cart_moves"].select("cart_id").distinct()


def _orders_affected(new: Staged, rows: Staged) -> DataFrame:
    """Orders with new events, of carts with new events, and placed while a product had a name that is new to us."""
    placed = _placed(rows)
    of_carts = placed.join(sf.broadcast(_carts_with_new_events(new)), on="cart_id", how="left_semi")
    had_name = (sf.col("sku") == sf.col("named")) & (sf.col("placed_at") >= sf.col("since"))
    of_names = placed.select("order_id", "placed_at", sf.explode("skus").alias("sku")).join(
        sf.broadcast(new["product_names"]), on=had_name, how="left_semi"
    )
    found = (new["order_moves"], of_carts, of_names)
    return reduce(DataFrame.union, (frame.select("order_id") for frame in found)).distinct()


def _restricted_to(rows: Staged, ids: Ids) -> Staged:
    """Keeps all events of those carts and orders, and all names of products, which are few."""
    moves = {"cart_moves": ("cart_id", ids["carts"]), "order_moves": ("order_id", ids["orders"])}
    kept = {
        name: rows[name].join(sf.broadcast(wanted), on=key, how="left_semi").select(*rows[name].columns)
        for name, (key, wanted) in moves.items()
    }
    return Staged(kept | {"product_names": rows["product_names"]})


def _minutes(new: Staged, index: Frames) -> Frames:
    """Looks up affected carts and orders in gold, which has the minutes in which something happened to them."""
    orders, carts = index["orders"], index["carts"]
    new_orders, new_carts = new["order_moves"].select("order_id"), _carts_with_new_events(new)
    had_name = sf.array_contains("lines.sku", sf.col("named")) & (sf.col("placed_at") >= sf.col("since"))
    found = {
        "order_moves": (
            orders.join(sf.broadcast(new_orders.distinct()), on="order_id", how="left_semi"),
            carts.join(sf.broadcast(_placed(new).select("cart_id").distinct()), on="cart_id", how="left_semi"),
        ),
        "cart_moves": (
            orders.join(sf.broadcast(new_carts), on="cart_id", how="left_semi"),
            carts.join(sf.broadcast(new_carts), on="cart_id", how="left_semi"),
        ),
        "product_names": (orders.join(sf.broadcast(new["product_names"]), on=had_name, how="left_semi"),),
    }
    return {
        name: reduce(DataFrame.union, (frame.select(sf.explode("minutes")) for frame in frames))
        for name, frames in found.items()
    }


def _placed(rows: Staged) -> DataFrame:
    placed = sf.col("placed")
    return (
        rows["order_moves"]
        .where("placed IS NOT NULL")
        .select(
            "order_id",
            placed["cart_id"].alias("cart_id"),
            placed["lines"]["sku"].alias("skus"),
            sf.col("event_time").alias("placed_at"),
        )
    )


SHOPPING = Scope(
    staging=(cart_moves, order_moves, product_names),
    intermediate=(cart_histories, order_processes),
    affected_ids=_affected_ids,
    restricted_to=_restricted_to,
    index=("carts", "orders"),
    minutes=_minutes,
    always_read={"stock_events": f"event_type IN {NAMING}"},
)
