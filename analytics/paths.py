"""The tables of events, and where a table is, by its name. Knows no Spark, so that readers without it start fast."""

from shared.settings import Settings

LAYERS = ("bronze", "silver", "gold", "batch", "speed")
TOPICS = {
    "cart.events": "cart_events",
    "order.events": "order_events",
    "payment.events": "payment_events",
    "stock.events": "stock_events",
}
"""The topics that silver has a table of. Bronze has that of the alerts as well."""


def path_of(settings: Settings, name: str) -> str:
    """Of `silver.cart_events`, say."""
    return f"{settings.lake}/{name.replace('.', '/')}"


def checkpoints_of(settings: Settings, query: str) -> str:
    """One folder for each generation of that query."""
    return f"{settings.lake}/_checkpoints/{query}"


def checkpoint_of(settings: Settings, query: str, generation: str) -> str:
    return f"{checkpoints_of(settings, query)}/{generation}"
