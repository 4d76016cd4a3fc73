"""`python -m services.catalog [all|api|worker]`: the catalog as a process of its own."""

from services.catalog.wiring import CATALOG
from shared.process import main

main("Till Roll: catalog", lambda _: [CATALOG], port=lambda settings: settings.catalog_port)
