"""The carts and orders that new events concern, and all their events: the scope of every table about shopping."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Filters, Scope, Silver
from analytics.gold.histories import cart_histories
from analytics.gold.processes import order_processes
from analytics.gold.pruning import spans, within
from analytics.gold.streams import NAMING, flat

SHOPPING_READS = ("cart_events", "order_events", "payment_events", "stock_events")


def touched_carts(new: Silver) -> DataFrame:
    return new["cart_moves"].select("cart_id").distinct()


def touched_orders(new: Silver, rows: Silver) -> DataFrame:
    """Orders with new events, those of carts with new events, and those placed when a product had another name."""
    placed = _placed(rows)
    of_carts = placed.join(sf.broadcast(touched_carts(new)), "cart_id", "left_semi")
    called = (sf.col("sku") == sf.col("named")) & (sf.col("placed_at") >= sf.col("since"))
    of_names = placed.select("order_id", "placed_at", sf.explode("skus").alias("sku")).join(
        sf.broadcast(new["product_names"]), called, "left_semi"
    )
    return reduce(
        DataFrame.union, (frame.select("order_id") for frame in (new["order_moves"], of_carts, of_names))
    ).distinct()


def concerned(new: Silver, rows: Silver) -> Mapping[str, DataFrame]:
    orders = touched_orders(new, rows)
    their_carts = _placed(rows).join(sf.broadcast(orders), "order_id", "left_semi").select("cart_id")
    return {"orders": orders, "carts": touched_carts(new).union(their_carts).distinct()}


def narrowed(rows: Silver, ids: Mapping[str, DataFrame]) -> Silver:
    """All events of those carts and orders, and all names of products: these are few."""
    orders, carts = sf.broadcast(ids["orders"]), sf.broadcast(ids["carts"])
    return {
        "cart_moves": rows["cart_moves"].join(carts, "cart_id", "left_semi").select(*rows["cart_moves"].columns),
        "order_moves": rows["order_moves"].join(orders, "order_id", "left_semi").select(*rows["order_moves"].columns),
        "product_names": rows["product_names"],
    }


def filters(new: Silver, known: Mapping[str, DataFrame]) -> Filters:
    """Carts and orders know the minutes in which something happened to them."""
    orders, carts, new_carts = known["orders"], known["carts"], touched_carts(new)
    new_orders = new["order_moves"].select("order_id").distinct()
    told = [
        orders.join(sf.broadcast(new_orders), "order_id", "left_semi"),
        orders.join(sf.broadcast(new_carts), "cart_id", "left_semi"),
        carts.join(sf.broadcast(_placed(new).select("cart_id").union(new_carts).distinct()), "cart_id", "left_semi"),
    ]
    if renamed := new["product_names"].select("named", "since").collect():
        skus = sf.array(*(sf.lit(sku) for sku in sorted({row["named"] for row in renamed})))
        told.append(
            orders.where(sf.col("placed_at") >= min(row["since"] for row in renamed)).where(
                sf.exists("lines", lambda line: sf.array_contains(skus, line["sku"]))
            )
        )
    minutes = (found.select(sf.explode("minutes")) for found in told)
    then = within("event_time", spans(reduce(DataFrame.union, minutes)))
    return dict.fromkeys(SHOPPING_READS, then) | {"stock_events": then | sf.col("event_type").isin(*NAMING)}


def _placed(rows: Silver) -> DataFrame:
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
    concerned=concerned,
    narrowed=narrowed,
    flat=flat,
    views={"cart_histories": cart_histories, "order_processes": order_processes},
    known=("carts", "orders"),
    filters=filters,
)
