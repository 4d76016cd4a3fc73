"""The lake folds a cart with Spark expressions, the cart service with its decider: both must come to the same lines."""

from functools import reduce

from pyspark.sql import SparkSession

from analytics.models.marts.carts import carts
from services.cart import decider
from tests.roll import ShopEvent
from tests.unit.analytics.recomputed import kept, recomputed, rows_by_key, small
from tests.unit.analytics.stories import eventful, silver_of

Lines = dict[str, tuple[str, int, int, str]]


def folded_by_the_service(events: list[ShopEvent]) -> dict[str, Lines]:
    """Lines by cart and product, as the decider of the cart service has them."""
    streams: dict[str, list[ShopEvent]] = {}
    for shop_event in events:
        if shop_event.stream_id.startswith("cart:"):
            streams.setdefault(shop_event.stream_id.removeprefix("cart:"), []).append(shop_event)
    return {
        cart_id: _lines(reduce(decider.evolve, (shop_event.event for shop_event in stream), decider.initial))
        for cart_id, stream in streams.items()
    }


def _lines(cart: decider.Cart) -> Lines:
    assert not isinstance(cart, decider.Empty)
    return {
        sku: (line.name, line.quantity, line.unit_price.amount, line.unit_price.currency)
        for sku, line in cart.lines.items()
    }


def test_spark_folds_a_cart_as_the_cart_service_does(spark: SparkSession) -> None:
    events = eventful(seed=21, carts=60)
    silver = {table: kept(frame.drop("batch")) for table, frame in silver_of(small(spark), events).items()}
    rows = rows_by_key(carts, recomputed([carts], silver)["carts"])
    columns = ("name", "quantity", "unit_price", "currency")
    folded_by_spark = {
        cart_id: {line["sku"]: tuple(line[column] for column in columns) for line in row["lines"]}
        for (cart_id,), row in rows.items()
    }
    assert folded_by_spark == folded_by_the_service(events)
    kinds = {type(shop_event.event).__name__ for shop_event in events}
    assert kinds >= {"ItemAdded", "QuantitySet", "ItemRemoved"}, "the stories should try every rule"
