"""The catalog service, put together."""

from services.catalog import decider, product
from services.catalog.api import STATUSES, router
from services.catalog.reactions import react
from services.catalog.views import PRODUCTS
from shared.decider import Announcement, Decider
from shared.envelope import millis
from shared.service import Projection, Reaction, Service

PRODUCT_TOPIC = "catalog.products"


def _announce(stock: decider.Stock, version: int) -> list[Announcement]:
    latest = product.announce(stock, version)
    return [Announcement(PRODUCT_TOPIC, latest.sku, latest)] if latest else []


CATALOG = Service(
    name="catalog",
    decider=Decider(
        category="stock",
        topic="stock.events",
        initial=decider.initial,
        decide=decider.decide,
        evolve=decider.evolve,
        announce=_announce,
    ),
    router=router,
    statuses=STATUSES,
    projections=[Projection("products", ["stock.events"], PRODUCTS.apply, PRODUCTS)],
    reactions=[
        Reaction(
            "reservations",
            ["order.events"],
            lambda message: react(message.type, message.data, message.stream_id, millis(message.time)),
        )
    ],
    documents={PRODUCT_TOPIC: product.Product},
)
