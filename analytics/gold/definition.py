"""What a gold table is: computed from silver, in units that can be computed again on their own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

Silver = Mapping[str, DataFrame]
"""By name, without the layer: `cart_events`, `order_events`, `payment_events`, `stock_events`."""


@dataclass(frozen=True)
class Gold:
    """Batch computes all of it, the stream the units that new rows touch. The same functions, hence the same rows."""

    name: str
    about: str
    reads: tuple[str, ...]
    key: tuple[str, ...]
    """Columns that tell its rows apart."""
    unit: tuple[str, ...]
    """Columns of `key`: rows that agree in them are computed together, from the same rows of silver."""
    compute: Callable[[Silver], DataFrame]
    touched: Callable[[Silver, Silver], DataFrame]
    """(new rows, all rows) -> the units, columns as in `unit`, that the new rows may change."""
    narrowed: Callable[[Silver, DataFrame], Silver]
    """(all rows, units) -> rows that suffice to compute those units. Rows of other units among them do no harm."""
