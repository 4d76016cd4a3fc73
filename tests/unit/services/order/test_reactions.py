"""What an order makes of the events of others, read as they come: plain records of another service's schema."""

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
from services.order.process import react
from tests.unit.cart.shop import CHECKED_OUT
from tests.unit.catalog.warehouse import FIRST, rejected, reserved
from tests.unit.order.shop import ANN, CART, LATER, LINES, MUG, NOON, ORDER, PLACE
from tests.unit.payment.till import AUTHORIZED, CAPTURE_DECLINED, HELD, REFUNDED, declined

HEARD: list[tuple[Any, str, Command]] = [
    (reserved(FIRST, 2), FIRST, RecordStockReserved(MUG)),
    (rejected(FIRST, 2, 0), FIRST, RecordStockRejected(MUG)),
    (HELD, ORDER, RecordPaymentHeld(LATER)),
    (AUTHORIZED, ORDER, RecordPaymentAuthorized()),
    (declined("review"), ORDER, RecordPaymentDeclined("review")),
    (CAPTURE_DECLINED, ORDER, RecordPaymentDeclined("provider")),
    (REFUNDED, ORDER, RecordPaymentRefunded()),
]


@pytest.mark.parametrize(("event", "order_id", "command"), HEARD, ids=lambda it: type(it).__name__)
def test_what_stock_and_payment_say_is_recorded(event: Any, order_id: str, command: Command) -> None:
    heard = react(type(event).__name__, asdict(event), "stock:or payment", LATER)
    assert heard == [(f"order:{order_id}", command)]


def test_a_checked_out_cart_places_its_order() -> None:
    assert react("CartCheckedOut", asdict(CHECKED_OUT), f"cart:{CART}", NOON) == [(f"order:{ORDER}", PLACE)]
    assert (CHECKED_OUT.order_id, CHECKED_OUT.customer_id) == (ORDER, ANN)
    assert [line.sku for line in CHECKED_OUT.lines] == [line.sku for line in LINES]


def test_everything_else_is_none_of_its_business() -> None:
    modules = services.cart.events, services.catalog.events, services.payment.events, services.order.events
    known = {event.__name__ for module in modules for event in get_args(module.Event)}
    others = known - {type(event).__name__ for event, _, _ in HEARD} - {"CartCheckedOut"}
    assert len(others) > 20
    assert [react(name, {"order_id": ORDER}, "cart:1", NOON) for name in [*others, "NeverHeardOf"]] == [[]] * (
        len(others) + 1
    )
