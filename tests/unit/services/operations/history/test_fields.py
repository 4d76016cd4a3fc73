"""What is to be seen of states and events: the shop's words, nothing personal, and nothing that was only moved."""

from functools import reduce
from itertools import pairwise
from typing import Any

from services.cart import decider as cart
from services.cart.events import CartOpened, ItemAdded, ItemRemoved
from services.catalog import decider as stock
from services.catalog.events import ProductListed, StockReserved, StockSold
from services.order import decider as order
from services.order.events import Line, OrderPlaced
from services.payment import decider as payment
from services.payment.events import AuthorizationRequested
from services.replay.difference import Change, between
from services.replay.portrait import SEALED, of_event, of_state
from shared.envelope import from_millis
from shared.money import Money

PRICE = Money(1190, "EUR")
PLACED = OrderPlaced("o-1", "c-1", "ann", (Line("MUG", "Mug", 2, PRICE),), Money(2380, "EUR"), "tok", "express", "X", 7)


def portrait(rules: Any, *events: Any, order_id: str | None = None) -> dict[str, Any]:
    return of_state(reduce(rules.evolve, events, rules.initial), rules.initial, order_id)


def test_a_state_is_told_flat_and_its_status_by_name() -> None:
    seen = portrait(order, PLACED)
    assert list(seen)[:3] == ["status", "order_id", "cart_id"]
    assert (seen["status"], seen["total"], seen["at"]) == ("placed", Money(2380, "EUR"), from_millis(7))
    assert seen["lines"] == {"MUG": {"sku": "MUG", "name": "Mug", "quantity": 2, "unit_price": PRICE}}
    paying = portrait(payment, AuthorizationRequested("p-1", "o-1", "ann", PRICE, "tok_ok"))
    assert (paying["status"], paying["amount"], paying["cancelled"]) == ("authorizing", PRICE, False)


def test_what_has_not_begun_has_no_status() -> None:
    assert {rules: of_state(rules.initial, rules.initial)["status"] for rules in (cart, order, payment, stock)} == {
        cart: None,
        order: None,
        payment: None,
        stock: None,
    }


def test_personal_data_is_sealed_in_states_and_events_and_in_records_without_a_class() -> None:
    assert portrait(order, PLACED)["recipient"] == SEALED
    assert of_event(PLACED)["recipient"] == SEALED
    assert of_event({"recipient": "X", "note": "for Ann"}) == {"recipient": SEALED, "note": "for Ann"}


def test_of_a_product_one_sees_who_holds_pieces() -> None:
    events = [ProductListed("MUG", "Mug", PRICE, 9), StockReserved("MUG", "o-1", 2), StockReserved("MUG", "o-2", 3)]
    seen = portrait(stock, *events, StockSold("MUG", "o-1", 2))
    assert (seen["available"], seen["reserved"], seen["sold"], seen["supplied"]) == (4, 3, 2, 9)
    assert seen["orders"] == {"o-2": "holds 3"}
    assert portrait(stock, *events, StockSold("MUG", "o-1", 2), order_id="o-1")["orders"] == {"o-1": "bought 2"}
    assert portrait(stock, *events, order_id="o-9")["orders"] == {}


def test_what_is_only_kept_elsewhere_has_not_changed() -> None:
    """Reservations are merged every so often. Nobody who looks at the state may see that."""
    events: list[Any] = [ProductListed("MUG", "Mug", PRICE, 500)]
    events += [StockReserved("MUG", f"o-{n}", 1) for n in range(200)]
    states = [stock.initial]
    for event in events:
        states.append(stock.evolve(states[-1], event))
    for before, after in pairwise(states[1:]):
        changes = list(between(of_state(before, stock.initial), of_state(after, stock.initial)))
        assert sorted(change.field.partition(".")[0] for change in changes) == ["available", "orders", "reserved"]


def test_what_comes_or_goes_as_a_whole_is_one_change() -> None:
    opened = CartOpened("ann", 1)
    mug = ItemAdded("MUG", "Mug", 2, PRICE, 2)
    empty, one = portrait(cart, opened), portrait(cart, opened, mug)
    line = {"sku": "MUG", "name": "Mug", "quantity": 2, "unit_price": PRICE}
    assert list(between(empty, one)) == [
        Change("lines.MUG", None, line),
        Change("active_at", from_millis(1), from_millis(2)),
    ]
    more = portrait(cart, opened, mug, mug)
    assert list(between(one, more)) == [Change("lines.MUG.quantity", 2, 4)]
    gone = portrait(cart, opened, mug, ItemRemoved("MUG", 2, 2))
    assert list(between(one, gone)) == [Change("lines.MUG", line, None)]
    assert list(between(one, one)) == []
