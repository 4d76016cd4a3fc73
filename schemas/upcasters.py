"""Upcasters: read an event that is no longer written as the one that replaced it.

They are part of the contract, so that every reader of a topic uses the same. Each function takes the fields of the
newest version of the old record and gives those of the new one. It only picks, computes and adds constants, so it works
on a dictionary and, in the lake, on a Spark column.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Upcaster(NamedTuple):
    into: str
    """Full name of the record that replaced it. That one may have been retired too."""
    convert: Callable[[Any], dict[str, Any]]


def stock_adjusted(old: Any) -> dict[str, Any]:
    """Adds a reason: why there were more or fewer pieces was not recorded then."""
    return {"sku": old["sku"], "difference": old["delta"], "reason": "unrecorded"}


def stock_corrected(old: Any) -> dict[str, Any]:
    """Leaves the count unknown: only the difference was recorded."""
    return {"sku": old["sku"], "difference": old["difference"], "counted": None}


UPCASTERS: dict[str, Upcaster] = {
    "tillroll.stock.StockAdjusted": Upcaster("tillroll.stock.StockCorrected", stock_adjusted),
    "tillroll.stock.StockCorrected": Upcaster("tillroll.stock.StockCounted", stock_corrected),
}
"""Upcasters by full name of the retired record. An entry here retires the record; its released file stays as it is."""
