"""How an event that is no longer written is read as the one that replaced it.

Part of the contract, so every reader of a topic uses the same: each function takes the fields of the newest version of
the old record and gives those of the new one. It only picks, computes and adds constants, so it works on a dictionary
and, in the lake, on a column alike.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Upcaster(NamedTuple):
    into: str
    """Full name of the record that took over. It may have been retired in its turn."""
    convert: Callable[[Any], dict[str, Any]]


def stock_adjusted(old: Any) -> dict[str, Any]:
    """Why the pieces were more or fewer was not asked then."""
    return {"sku": old["sku"], "difference": old["delta"], "reason": "unrecorded"}


def stock_corrected(old: Any) -> dict[str, Any]:
    """The difference was recorded, not the count that it came from."""
    return {"sku": old["sku"], "difference": old["difference"], "counted": None}


UPCASTERS: dict[str, Upcaster] = {
    "tillroll.stock.StockAdjusted": Upcaster("tillroll.stock.StockCorrected", stock_adjusted),
    "tillroll.stock.StockCorrected": Upcaster("tillroll.stock.StockCounted", stock_corrected),
}
"""By full name of the retired record. Being named here is what retires it: its released file is never touched."""
