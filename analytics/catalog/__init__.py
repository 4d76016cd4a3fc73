"""Every table of the lake once: name, layer, columns with type and description, key. Imports no Spark."""

from collections.abc import Iterator

from analytics.catalog.events import ALERTS as ALERTS
from analytics.catalog.events import FEED as FEED
from analytics.catalog.events import SILVER_TABLES as SILVER_TABLES
from analytics.catalog.events import TOPICS as TOPICS
from analytics.catalog.events import column_of as column_of
from analytics.catalog.events import current_events as current_events
from analytics.catalog.events import event_tables
from analytics.catalog.gold import GOLD
from analytics.catalog.table import Table as Table
from shared.schemas.contract.event_schemas import Schemas

LAYERS = ("bronze", "silver", "gold", "batch", "speed")
"""Layers that are stored and refreshed. `replay` is stored for a while, `serving` is computed when it is read."""
READABLE_LAYERS = (*LAYERS, "replay")
GOLD_NAMES = tuple(table.name.partition(".")[2] for table in GOLD)
COMPUTED = {
    "gold": "",
    "batch": "Lambda's batch layer, computed from bronze up to a cut: ",
    "speed": "Lambda's speed layer, what has changed since the batch: ",
    "replay": "Recomputed by till lake replay, not yet live: ",
    "serving": "Lambda's serving view, batch and speed combined: ",
}
"""The layers that have gold's tables, and how the description of such a table begins."""
CORE_TABLES = (
    "bronze.events",
    "bronze.schemas",
    *(f"silver.{name}" for name in (*SILVER_TABLES, "quarantine")),
    *(f"gold.{name}" for name in GOLD_NAMES),
)
"""The tables that `till lake run` makes."""
ALL_TABLES = (*CORE_TABLES, *(f"{layer}.{name}" for layer in ("batch", "speed", "replay") for name in GOLD_NAMES))
"""All tables that a lake may store."""


def all_tables(schemas: Schemas | None = None) -> Iterator[Table]:
    """Yields the tables of bronze, silver and gold with their columns."""
    yield from event_tables(schemas)
    yield from GOLD


def find_table(name: str) -> Table | None:
    """Returns a table of any layer by its full name; `batch.orders` has the columns of `gold.orders`."""
    layer, _, short = name.partition(".")
    if layer in COMPUTED:
        table = next((table for table in GOLD if table.name == f"gold.{short}"), None)
        return table.renamed(name, COMPUTED[layer] + table.description) if table else None
    return next((table for table in event_tables() if table.name == name), None)
