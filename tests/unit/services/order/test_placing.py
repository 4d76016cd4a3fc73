"""An order is placed once, every line is reserved, and then its payment is requested."""

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
from services.order.decider import payment_of
from tests.unit.services.order.words import (
    BY_ANN,
    BY_SUPPORT,
    LATER,
    MUG,
    MUG_RESERVED,
    ORDER,
    PLACE,
    PLACED,
    POT,
    POT_RESERVED,
    REQUESTED,
    RESERVED,
    cancelled,
    expire,
    given,
)


def test_a_checked_out_cart_becomes_an_order() -> None:
    given().when(PLACE).then(PLACED)


def test_an_order_is_placed_once() -> None:
    given(PLACED).when(PLACE).nothing()
    given(*RESERVED).when(PLACE).nothing()
    given(PLACED, cancelled("customer", "")).when(PLACE).nothing()


@pytest.mark.parametrize(
    "command",
    [
        RecordStockReserved(MUG),
        RecordStockRejected(MUG),
        RecordPaymentHeld(LATER),
        RecordPaymentAuthorized(),
        RecordPaymentDeclined("provider"),
        RecordPaymentRefunded(),
        BY_ANN,
        BY_SUPPORT,
        expire(LATER),
    ],
)
def test_an_order_nobody_placed_is_unknown(command: Command) -> None:
    given().when(command).refused("order-unknown")


def test_the_order_waits_until_every_line_is_reserved() -> None:
    given(PLACED).when(RecordStockReserved(MUG)).then(MUG_RESERVED)
    given(PLACED, POT_RESERVED).when(RecordStockReserved(MUG)).then(MUG_RESERVED, REQUESTED)


def test_a_repeated_reservation_counts_once() -> None:
    given(PLACED, MUG_RESERVED).when(RecordStockReserved(MUG)).nothing()
    given(*RESERVED).when(RecordStockReserved(MUG)).nothing()


def test_a_reservation_of_something_else_is_not_this_orders() -> None:
    given(PLACED).when(RecordStockReserved("PAN-200")).refused("line-unknown", "PAN-200")


def test_one_line_that_is_sold_out_cancels_the_order() -> None:
    given(PLACED).when(RecordStockRejected(POT)).then(cancelled("out_of_stock", payment_id=""))
    given(PLACED, MUG_RESERVED).when(RecordStockRejected(POT)).then(cancelled("out_of_stock", payment_id=""))


def test_an_order_has_one_payment_and_another_order_another() -> None:
    assert payment_of(ORDER) == payment_of(ORDER) == REQUESTED.payment_id
    assert payment_of(ORDER) != payment_of(PLACED.cart_id)
