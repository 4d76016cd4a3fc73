"""States and events are shown in the shop's words, without personal data and without internal changes."""

from functools import reduce
from itertools import pairwise
from typing import Any

from services.cart import decider as cart
from services.cart.events import CartOpened, ItemAdded, ItemRemoved
from services.catalog import decider as stock
from services.catalog.events import ProductListed, StockReserved, StockSold
from services.common.money import Money
from services.operations.history.changes import Change, compare_fields
from services.operations.history.fields import SEALED, event_fields, state_fields
from services.order import decider as order
from services.order.events import Line, OrderPlaced
from services.payment import decider as payment
from services.payment.events import AuthorizationRequested
from shared.envelope import from_millis

PRICE = Money(1190, "EUR")
PLACED = OrderPlaced("o-1", "c-1", "ann", (Line("MUG", "Mug", 2, PRICE),), Money(2380, "EUR"), "tok", "express", "X", 7)


def fields_of(rules: Any, *events: Any, order_id: str | None = None) -> dict[str, Any]:
    return state_fields(reduce(rules.evolve, events, rules.initial), rules.initial, order_id)


def test_a_state_is_shown_flat_and_its_status_by_name() -> None:
    seen = fields_of(order, PLACED)
    assert list(seen)[:3] == ["status", "order_id", "cart_id"]
    assert (seen["status"], seen["total"], seen["at"]) == ("placed", Money(2380, "EUR"), from_millis(7))
    assert seen["lines"] == {"MUG": {"sku": "MUG", "name": "Mug", "quantity": 2, "unit_price": PRICE}}
    paying = fields_of(payment, AuthorizationRequested("p-1", "o-1", "ann", PRICE, "tok_ok"))
    assert (paying["status"], paying["amount"], paying["cancelled"]) == ("authorizing", PRICE, False)


def test_a_stream_without_events_has_no_status() -> None:
    assert {rules: state_fields(rules.initial, rules.initial)["status"] for rules in (cart, order, payment, stock)} == {
        cart: None,
        order: None,
        payment: None,
        stock: None,
    }


def test_personal_data_is_sealed_in_states_and_events_and_in_records_without_a_class() -> None:
    assert fields_of(order, PLACED)["recipient"] == SEALED
    assert event_fields(PLACED)["recipient"] == SEALED
    assert event_fields({"recipient": "X", "note": "for Ann"}) == {"recipient": SEALED, "note": "for Ann"}


def test_a_product_shows_which_orders_hold_pieces() -> None:
    events = [ProductListed("MUG", "Mug", PRICE, 9), StockReserved("MUG", "o-1", 2), StockReserved("MUG", "o-2", 3)]
    seen = fields_of(stock, *events, StockSold("MUG", "o-1", 2))
    assert (seen["available"], seen["reserved"], seen["sold"], seen["supplied"]) == (4, 3, 2, 9)
    assert seen["orders"] == {"o-2": "holds 3"}
    assert fields_of(stock, *events, StockSold("MUG", "o-1", 2), order_id="o-1")["orders"] == {"o-1": "bought 2"}
    assert fields_of(stock, *events, order_id="o-9")["orders"] == {}


def test_merging_reservations_is_not_shown_as_a_change() -> None:
    """A shelf merges its reservations now and then, which must not be visible."""
    events: list[Any] = [ProductListed("MUG", "Mug", PRICE, 500)]
    events += [StockReserved("MUG", f"o-{n}", 1) for n in range(200)]
    states = [stock.initial]
    for event in events:
        states.append(stock.evolve(states[-1], event))
    for before, after in pairwise(states[1:]):
        changes = list(compare_fields(state_fields(before, stock.initial), state_fields(after, stock.initial)))
        assert sorted(change.field.partition(".")[0] for change in changes) == ["available", "orders", "reserved"]


def test_a_line_that_appears_or_disappears_is_one_change() -> None:
    opened = CartOpened("ann", 1)
    mug = ItemAdded("MUG", "Mug", 2, PRICE, 2)
    empty, one = fields_of(cart, opened), fields_of(cart, opened, mug)
    line = {"sku": "MUG", "name": "Mug", "quantity": 2, "unit_price": PRICE}
    assert list(compare_fields(empty, one)) == [
        Change("lines.MUG", None, line),
        Change("active_at", from_millis(1), from_millis(2)),
    ]
    more = fields_of(cart, opened, mug, mug)
    assert list(compare_fields(one, more)) == [Change("lines.MUG.quantity", 2, 4)]
    gone = fields_of(cart, opened, mug, ItemRemoved("MUG", 2, 2))
    assert list(compare_fields(one, gone)) == [Change("lines.MUG", line, None)]
    assert list(compare_fields(one, one)) == []
