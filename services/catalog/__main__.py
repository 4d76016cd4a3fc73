"""Runs the catalog service as a process of its own: `python -m services.catalog [all|api|worker]`."""

from services.catalog.settings import CatalogSettings
from services.catalog.wiring import catalog
from shared.process import main

main(
    "Till Roll: catalog",
    CatalogSettings,
    lambda settings: [catalog(settings)],
    address=lambda settings: (settings.shop_host, settings.catalog_port),
)
