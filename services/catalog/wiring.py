"""Declares the catalog service: its rules, its read model, and its reactions to orders."""

from pathlib import Path

from services.catalog import decider, product
from services.catalog.api import REFUSAL_STATUSES, router
from services.catalog.reactions import react
from services.catalog.settings import CatalogSettings
from services.catalog.views import PRODUCTS
from shared.decider import Announcement, Decider
from shared.messaging.reactions import Reaction
from shared.service import Projection, Service

PRODUCT_TOPIC = "catalog.products"


def _announce(stock: decider.Stock, version: int) -> list[Announcement]:
    latest = product.announce(stock, version)
    return [Announcement(PRODUCT_TOPIC, latest.sku, latest)] if latest else []


def catalog(_settings: CatalogSettings) -> Service:
    return Service(
        name="catalog",
        decider=Decider.of(decider, "stock", "stock.events", announce=_announce),
        router=router,
        statuses=REFUSAL_STATUSES,
        projections=[Projection("products", ["stock.events"], PRODUCTS.apply, PRODUCTS)],
        reactions=[Reaction("reservations", ["order.events"], react)],
        documents={PRODUCT_TOPIC: product.Product},
        migrations=Path(__file__).with_name("migrations"),
    )
