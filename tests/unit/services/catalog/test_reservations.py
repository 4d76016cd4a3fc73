"""Reservations are exact about pieces held, bounded in what they remember, and never altered in place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.catalog import reservations
from services.catalog.reservations import (
    MERGE_AT,
    NO_RESERVATIONS,
    REMEMBERED,
    UNDONE,
    Bought,
    Held,
    Reservation,
    Reservations,
    Undone,
)

some_reservation = st.integers(1, 3).map(Held) | st.integers(1, 3).map(Bought) | st.just(UNDONE)


def settle(orders: Reservations, count: int) -> Reservations:
    for n in range(count):
        orders = orders.note(f"order-{n}", Held(1)).note(f"order-{n}", UNDONE)
    return orders


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20).map(str), some_reservation)), st.integers(1, 5))
def test_reservations_know_what_a_dict_would_know(notes: list[tuple[str, Reservation]], merge_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservations, "MERGE_AT", merge_at)
        orders, expected = NO_RESERVATIONS, dict[str, Reservation]()
        for order_id, reservation in notes:
            if isinstance(expected.get(order_id), Undone):  # an undone order stays undone
                continue
            before, seen = orders, orders.of(order_id)
            orders, expected[order_id] = orders.note(order_id, reservation), reservation
            assert before.of(order_id) == seen
        assert {order_id: orders.of(order_id) for order_id in expected} == expected
        held = {order_id: it.pieces for order_id, it in expected.items() if isinstance(it, Held)}
        assert dict(orders.holders()) == held


def test_an_order_that_never_asked_has_no_reservation() -> None:
    assert settle(NO_RESERVATIONS, 500).of("another") is None


def test_the_latest_settled_orders_are_remembered_and_the_oldest_forgotten() -> None:
    count = 3 * REMEMBERED
    orders = settle(NO_RESERVATIONS, count)
    assert all(orders.of(f"order-{n}") == UNDONE for n in range(count - REMEMBERED, count))
    assert orders.of("order-0") is None


def test_held_pieces_are_never_forgotten() -> None:
    orders = settle(NO_RESERVATIONS.note("patient", Held(7)), 3 * REMEMBERED)
    assert orders.of("patient") == Held(7)


def test_their_size_does_not_grow_with_the_length_of_the_stream() -> None:
    orders = settle(NO_RESERVATIONS, 10_000)
    assert sum(map(len, orders)) <= REMEMBERED + MERGE_AT


def test_an_event_copies_only_the_latest_changes() -> None:
    orders = NO_RESERVATIONS
    for n in range(1000):
        orders = orders.note(f"order-{n}", Held(1))
    assert orders.note("one more", Held(1)).held is orders.held
    assert len(orders.recent) < MERGE_AT
