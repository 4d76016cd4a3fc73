"""The carts and orders that new events concern, and all their events: the scope of every table about shopping."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analytics.gold.definition import Filters, Scope, Silver
from analytics.gold.histories import cart_histories
from analytics.gold.processes import order_processes
from analytics.gold.pruning import spans, within
from analytics.gold.streams import NAMING, id_of_stream, names, order_of

SHOPPING_READS = ("cart_events", "order_events", "payment_events", "stock_events")
OF_ORDERS = ("order_events", "payment_events", "stock_events")


def touched_carts(new: Silver) -> DataFrame:
    return new["cart_events"].select(id_of_stream().alias("cart_id")).distinct()


def touched_orders(new: Silver, rows: Silver) -> DataFrame:
    """Orders with new events, those of carts with new events, and those placed when a product had another name."""
    placed = _placed(rows)
    of_carts = placed.join(sf.broadcast(touched_carts(new)), "cart_id", "left_semi")
    renamed = sf.broadcast(names(new).select(sf.col("sku").alias("named"), "since"))
    of_names = placed.select("order_id", "placed_at", sf.explode("skus").alias("sku")).join(
        renamed, (sf.col("sku") == sf.col("named")) & (sf.col("placed_at") >= sf.col("since")), "left_semi"
    )
    own = [new[table].select(order_of(table).alias("order_id")) for table in OF_ORDERS]
    ids = [*own, of_carts.select("order_id"), of_names.select("order_id")]
    return reduce(DataFrame.unionByName, ids).where("order_id IS NOT NULL").distinct()


def concerned(new: Silver, rows: Silver) -> Mapping[str, DataFrame]:
    orders = touched_orders(new, rows)
    their_carts = _placed(rows).join(sf.broadcast(orders), "order_id", "left_semi").select("cart_id")
    return {"orders": orders, "carts": touched_carts(new).unionByName(their_carts).distinct()}


def narrowed(rows: Silver, ids: Mapping[str, DataFrame]) -> Silver:
    """All events of those carts and orders, and all names of products: these are few."""
    orders = sf.broadcast(ids["orders"].select(sf.col("order_id").alias("wanted")))
    carts = sf.broadcast(ids["carts"].select(sf.col("cart_id").alias("wanted")))
    found = {t: rows[t].join(orders, order_of(t) == sf.col("wanted"), "left_semi") for t in OF_ORDERS}
    naming = rows["stock_events"].where(sf.col("event_type").isin(*NAMING))
    return found | {
        "cart_events": rows["cart_events"].join(carts, id_of_stream() == sf.col("wanted"), "left_semi"),
        "stock_events": found["stock_events"].unionByName(naming),
    }


def filters(new: Silver, known: Mapping[str, DataFrame]) -> Filters:
    """Carts and orders know the minutes in which something happened to them."""
    orders, carts = known["orders"], known["carts"]
    own = [new[table].select(order_of(table).alias("order_id")) for table in OF_ORDERS]
    new_orders = sf.broadcast(reduce(DataFrame.unionByName, own).where("order_id IS NOT NULL").distinct())
    new_carts = sf.broadcast(touched_carts(new))
    carts_of_new = sf.broadcast(_placed(new).select("cart_id").unionByName(touched_carts(new)).distinct())
    told = [
        orders.join(new_orders, "order_id", "left_semi"),
        orders.join(new_carts, "cart_id", "left_semi"),
        carts.join(carts_of_new, "cart_id", "left_semi"),
    ]
    if renamed := names(new).select("sku", "since").collect():
        skus = sf.array(*(sf.lit(sku) for sku in sorted({row.sku for row in renamed})))
        told.append(
            orders.where(sf.col("placed_at") >= min(row.since for row in renamed)).where(
                sf.exists("lines", lambda line: sf.array_contains(skus, line["sku"]))
            )
        )
    minutes = (found.select(sf.explode("minutes")) for found in told)
    then = within("event_time", spans(reduce(DataFrame.unionByName, minutes)))
    return dict.fromkeys(SHOPPING_READS, then) | {"stock_events": then | sf.col("event_type").isin(*NAMING)}


def _placed(rows: Silver) -> DataFrame:
    placed = sf.col("order_placed")
    return (
        rows["order_events"]
        .where(sf.col("event_type") == "OrderPlaced")
        .select(
            placed["order_id"].alias("order_id"),
            placed["cart_id"].alias("cart_id"),
            placed["lines"]["sku"].alias("skus"),
            sf.col("event_time").alias("placed_at"),
        )
    )


SHOPPING = Scope(
    concerned=concerned,
    narrowed=narrowed,
    views={"cart_histories": cart_histories, "order_processes": order_processes},
    known=("carts", "orders"),
    filters=filters,
)
