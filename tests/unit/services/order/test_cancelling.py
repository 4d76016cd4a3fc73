"""The rules for cancelling: who may, until when, and a cancelled order stays cancelled."""

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
from services.order.events import Event
from tests.unit.services.order.words import (
    BY_ANN,
    BY_BOB,
    BY_SUPPORT,
    CONFIRMED,
    HELD,
    HOUR,
    LATER,
    MUG,
    MUG_RESERVED,
    NOON,
    PLACED,
    POT,
    RESERVED,
    cancelled,
    expire,
    given,
)


@pytest.mark.parametrize("command", [BY_ANN, BY_SUPPORT])
def test_an_order_is_cancelled_before_it_is_confirmed(command: Command) -> None:
    given(PLACED).when(command).then(cancelled("customer", payment_id=""))
    given(PLACED, MUG_RESERVED).when(command).then(cancelled("customer", payment_id=""))
    given(*RESERVED).when(command).then(cancelled("customer"))
    given(*RESERVED, HELD).when(command).then(cancelled("customer"))


def test_a_confirmed_order_is_cancelled_by_support_only() -> None:
    given(*RESERVED, CONFIRMED).when(BY_ANN).refused("order-confirmed", "support")
    given(*RESERVED, CONFIRMED).when(BY_SUPPORT).then(cancelled("customer"))


@pytest.mark.parametrize("history", [[PLACED], [*RESERVED, CONFIRMED], [PLACED, cancelled("timeout", "")]])
def test_someone_elses_order_is_unknown(history: list[Event]) -> None:
    given(*history).when(BY_BOB).refused("order-unknown")


@pytest.mark.parametrize(
    "late",
    [
        BY_ANN,
        BY_SUPPORT,
        RecordStockReserved(MUG),
        RecordStockRejected(POT),
        RecordPaymentHeld(LATER),
        RecordPaymentAuthorized(),
        RecordPaymentDeclined("provider"),
        RecordPaymentRefunded(),
        expire(NOON + 2 * HOUR),
    ],
)
@pytest.mark.parametrize(
    "history",
    [
        [PLACED, cancelled("out_of_stock", "")],
        [*RESERVED, cancelled("customer")],
        [*RESERVED, HELD, cancelled("fraud")],
        [*RESERVED, CONFIRMED, cancelled("customer")],
    ],
)
def test_a_cancelled_order_stays_cancelled(history: list[Event], late: Command) -> None:
    given(*history).when(late).nothing()
