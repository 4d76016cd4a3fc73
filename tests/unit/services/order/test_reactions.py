"""Events of cart, catalog and payment, as plain records of their schemas, lead to commands to the order."""

from dataclasses import asdict
from typing import Any, get_args

import pytest

import services.cart.events
import services.catalog.events
import services.order.events
import services.payment.events
from services.order.commands import (
    Command,
    RecordPaymentAuthorized,
    RecordPaymentDeclined,
    RecordPaymentHeld,
    RecordPaymentRefunded,
    RecordStockRejected,
    RecordStockReserved,
)
from services.order.reactions import react
from shared.messaging.incoming import Incoming
from tests.unit.services.cart.words import CHECKED_OUT
from tests.unit.services.catalog.words import FIRST, rejected, reserved
from tests.unit.services.order.words import ANN, CART, LATER, LINES, MUG, NOON, ORDER, PLACE
from tests.unit.services.payment.words import AUTHORIZED, CAPTURE_DECLINED, HELD, REFUNDED, declined

REACTIONS: list[tuple[Any, str, Command]] = [
    (reserved(FIRST, 2), FIRST, RecordStockReserved(MUG)),
    (rejected(FIRST, 2, 0), FIRST, RecordStockRejected(MUG)),
    (HELD, ORDER, RecordPaymentHeld(LATER)),
    (AUTHORIZED, ORDER, RecordPaymentAuthorized()),
    (declined("review"), ORDER, RecordPaymentDeclined("review")),
    (CAPTURE_DECLINED, ORDER, RecordPaymentDeclined("provider")),
    (REFUNDED, ORDER, RecordPaymentRefunded()),
]


@pytest.mark.parametrize(("event", "order_id", "command"), REACTIONS, ids=lambda it: type(it).__name__)
def test_events_of_stock_and_payment_are_recorded(event: Any, order_id: str, command: Command) -> None:
    commands = react(Incoming(type(event).__name__, "stock:or payment", 1, asdict(event)), LATER)
    assert commands == [(f"order:{order_id}", command)]


def test_a_checked_out_cart_places_its_order() -> None:
    assert react(Incoming("CartCheckedOut", f"cart:{CART}", 1, asdict(CHECKED_OUT)), NOON) == [
        (f"order:{ORDER}", PLACE)
    ]
    assert (CHECKED_OUT.order_id, CHECKED_OUT.customer_id) == (ORDER, ANN)
    assert [line.sku for line in CHECKED_OUT.lines] == [line.sku for line in LINES]


def test_other_events_lead_to_no_command() -> None:
    modules = services.cart.events, services.catalog.events, services.payment.events, services.order.events
    known = {event.__name__ for module in modules for event in get_args(module.Event)}
    others = known - {type(event).__name__ for event, _, _ in REACTIONS} - {"CartCheckedOut"}
    assert len(others) > 20
    assert [react(Incoming(name, "cart:1", 1, {"order_id": ORDER}), NOON) for name in [*others, "Unknown"]] == [[]] * (
        len(others) + 1
    )
