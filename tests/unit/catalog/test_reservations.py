"""The memory of reservations: exact about what is held, bounded in what it remembers, never altered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.catalog import reservations
from services.catalog.reservations import MERGE_AT, NO_RESERVATIONS, REMEMBERED, Reservations


def settle(orders: Reservations, count: int) -> Reservations:
    for n in range(count):
        orders = orders.note(f"order-{n}", 1).note(f"order-{n}", 0)
    return orders


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20).map(str), st.integers(-3, 3))), st.integers(1, 5))
def test_it_knows_what_a_dict_knows(notes: list[tuple[str, int]], merge_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reservations, "MERGE_AT", merge_at)
        orders, known = NO_RESERVATIONS, dict[str, int]()
        for order_id, pieces in notes:
            if known.get(order_id) == 0:  # settled is settled
                continue
            before, seen = orders, orders.pieces(order_id)
            orders, known[order_id] = orders.note(order_id, pieces), pieces
            assert before.pieces(order_id) == seen
        assert {order_id: orders.pieces(order_id) for order_id in known} == known


def test_an_order_never_heard_of_is_unknown() -> None:
    assert settle(NO_RESERVATIONS, 500).pieces("another") is None


def test_the_latest_settled_orders_are_remembered_and_the_oldest_forgotten() -> None:
    count = 3 * REMEMBERED
    orders = settle(NO_RESERVATIONS, count)
    assert all(orders.pieces(f"order-{n}") == 0 for n in range(count - REMEMBERED, count))
    assert orders.pieces("order-0") is None


def test_what_is_held_is_never_forgotten() -> None:
    orders = settle(NO_RESERVATIONS.note("patient", 7), 3 * REMEMBERED)
    assert orders.pieces("patient") == 7


def test_its_size_does_not_grow_with_the_length_of_the_stream() -> None:
    orders = settle(NO_RESERVATIONS, 10_000)
    assert sum(map(len, orders)) <= REMEMBERED + MERGE_AT


def test_a_change_copies_the_latest_changes_only() -> None:
    orders = NO_RESERVATIONS
    for n in range(1000):
        orders = orders.note(f"order-{n}", 1)
    assert orders.note("one more", 1).held is orders.held
    assert len(orders.recent) < MERGE_AT
