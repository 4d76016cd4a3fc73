"""An order that takes too long is cancelled."""

import pytest

from services.order.decider import first_due, initial, next_due
from services.order.events import Event
from tests.unit.services.order.words import (
    CONFIRMED,
    HELD,
    HOUR,
    LATER,
    MINUTE,
    MUG_RESERVED,
    NOON,
    PLACED,
    RESERVED,
    cancelled,
    expire,
    given,
)


def test_an_order_that_takes_too_long_is_cancelled() -> None:
    given(PLACED, MUG_RESERVED).when(expire(NOON + MINUTE)).then(cancelled("timeout", payment_id=""))
    given(*RESERVED).when(expire(NOON + MINUTE)).then(cancelled("timeout"))


def test_an_order_within_its_time_does_not_expire() -> None:
    given(*RESERVED).when(expire(NOON + MINUTE - 1)).nothing()


def test_a_review_has_its_own_time() -> None:
    given(*RESERVED, HELD).when(expire(LATER + HOUR - 1)).nothing()
    given(*RESERVED, HELD).when(expire(LATER + HOUR)).then(cancelled("timeout"))


def test_a_confirmed_order_does_not_expire() -> None:
    given(*RESERVED, CONFIRMED).when(expire(NOON + 100 * HOUR)).nothing()


@pytest.mark.parametrize(
    ("history", "due"),
    [
        ([PLACED], NOON + MINUTE),
        ([*RESERVED], NOON + MINUTE),
        ([*RESERVED, HELD], LATER + HOUR),
        ([*RESERVED, CONFIRMED], None),
        ([*RESERVED, cancelled("customer")], None),
    ],
)
def test_the_deadline_is_known_until_the_order_is_final(history: list[Event], due: int | None) -> None:
    state = given(*history).state
    assert next_due(state, MINUTE, HOUR) == due
    if due is not None:
        given(*history).when(expire(due)).then(cancelled("timeout", getattr(state, "payment_id", "")))


def test_only_placing_sets_the_first_deadline() -> None:
    assert first_due(PLACED, MINUTE) == NOON + MINUTE
    assert [first_due(event, MINUTE) for event in (MUG_RESERVED, HELD, CONFIRMED, cancelled("fraud"))] == [None] * 4
    assert next_due(initial, MINUTE, HOUR) is None
