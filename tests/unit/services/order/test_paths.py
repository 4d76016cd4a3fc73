"""Every path of the order saga in one table. Each message of each path arrives twice."""

import pytest

from services.order.commands import (
    Command,
    RecordPaymentAuthorized,
    RecordPaymentDeclined,
    RecordPaymentHeld,
    RecordPaymentRefunded,
    RecordStockRejected,
    RecordStockReserved,
)
from services.order.decider import Cancelled, Order, decide, evolve, initial
from services.order.events import Event
from tests.unit.services.order.words import BY_ANN, BY_SUPPORT, HOUR, LATER, MUG, NOON, PLACE, POT, expire

MUGS, POTS, NO_POTS = RecordStockReserved(MUG), RecordStockReserved(POT), RecordStockRejected(POT)
PAID, HELD, REFUNDED = RecordPaymentAuthorized(), RecordPaymentHeld(LATER), RecordPaymentRefunded()
DECLINED, RISKY, REJECTED = (RecordPaymentDeclined(by) for by in ("provider", "risk", "review"))
TOO_LATE = expire(NOON + 2 * HOUR)

PATHS: list[tuple[list[Command], str, str]] = [
    ([MUGS, POTS, PAID], "reserved reserved requested confirmed", "confirmed"),
    ([POTS, MUGS, HELD, PAID], "reserved reserved requested held confirmed", "confirmed"),
    ([NO_POTS], "cancelled", "out_of_stock"),
    ([MUGS, NO_POTS], "reserved cancelled", "out_of_stock"),
    ([NO_POTS, MUGS], "cancelled", "out_of_stock"),
    ([MUGS, POTS, DECLINED], "reserved reserved requested cancelled", "payment_declined"),
    ([MUGS, POTS, RISKY], "reserved reserved requested cancelled", "fraud"),
    ([MUGS, POTS, HELD, REJECTED], "reserved reserved requested held cancelled", "fraud"),
    ([MUGS, POTS, HELD, DECLINED], "reserved reserved requested held cancelled", "payment_declined"),
    ([BY_ANN, MUGS, POTS], "cancelled", "customer"),
    ([MUGS, BY_ANN, POTS], "reserved cancelled", "customer"),
    ([MUGS, POTS, BY_ANN, PAID], "reserved reserved requested cancelled", "customer"),
    ([MUGS, POTS, HELD, BY_ANN, PAID], "reserved reserved requested held cancelled", "customer"),
    ([MUGS, POTS, BY_SUPPORT, PAID], "reserved reserved requested cancelled", "customer"),
    ([MUGS, POTS, PAID, BY_SUPPORT], "reserved reserved requested confirmed cancelled", "customer"),
    ([MUGS, POTS, PAID, REFUNDED], "reserved reserved requested confirmed cancelled", "customer"),
    ([MUGS, POTS, PAID, DECLINED], "reserved reserved requested confirmed cancelled", "payment_declined"),
    ([TOO_LATE, MUGS, POTS], "cancelled", "timeout"),
    ([MUGS, TOO_LATE, POTS], "reserved cancelled", "timeout"),
    ([MUGS, POTS, TOO_LATE, PAID], "reserved reserved requested cancelled", "timeout"),
    ([MUGS, POTS, TOO_LATE, HELD, REJECTED], "reserved reserved requested cancelled", "timeout"),
    ([MUGS, POTS, HELD, TOO_LATE, PAID], "reserved reserved requested held cancelled", "timeout"),
    ([MUGS, POTS, PAID, TOO_LATE], "reserved reserved requested confirmed", "confirmed"),
]
WORDS = {
    "OrderPlaced": "placed",
    "LineReserved": "reserved",
    "PaymentRequested": "requested",
    "OrderHeld": "held",
    "OrderConfirmed": "confirmed",
    "OrderCancelled": "cancelled",
}


def run(path: list[Command], times: int) -> tuple[Order, list[Event]]:
    order, happened = initial, list[Event]()
    for command in [PLACE, *path]:
        for _ in range(times):
            for event in decide(command, order):
                order = evolve(order, event)
                happened.append(event)
    return order, happened


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize(("path", "happens", "end"), PATHS, ids=[f"{e}: {h}" for _, h, e in PATHS])
def test_a_path_leads_to_its_events_and_its_end_even_if_every_message_is_repeated(
    path: list[Command], happens: str, end: str, times: int
) -> None:
    order, happened = run(path, times)
    assert " ".join(WORDS[type(event).__name__] for event in happened) == f"placed {happens}"
    assert (order.reason if isinstance(order, Cancelled) else type(order).__name__.lower()) == end


def test_the_paths_end_in_every_way_there_is() -> None:
    reasons = {"out_of_stock", "payment_declined", "fraud", "customer", "timeout"}
    assert {end for _, _, end in PATHS} == {"confirmed"} | reasons
