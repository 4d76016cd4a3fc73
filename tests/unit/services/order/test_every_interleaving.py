"""Tries every way in which an order can go, not a sample: each message at each moment, early, late or repeated, with a
cancel, a deadline, a review or a refund in between, and a provider that approves or declines.
"""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from services.catalog import decider as stock
from services.catalog.commands import ReleaseStock, ReserveStock
from services.catalog.events import StockReserved, StockReturned
from services.order import decider as order
from services.order.commands import RecordPaymentDeclined, RecordPaymentRefunded
from services.payment import decider as payment
from services.payment.commands import CancelPayment, CapturePayment, RequestPayment
from services.payment.risk import Allow
from tests.unit.services.order.promises import check_always, check_at_rest
from tests.unit.services.order.world import (
    DECIDERS,
    Deciders,
    Step,
    World,
    after,
    anything,
    arrivals,
    is_at_rest,
    makes_a_difference,
    new_world,
    placed,
)

ALLOW = Allow()
Steps = Callable[[World], list[Step]]


def every_world(start: World, steps: Steps = anything) -> Iterator[World]:
    """Yields each reachable world once."""
    reached = {start.identity}
    waiting = [start]
    while waiting:
        world = waiting.pop()
        yield world
        for step in steps(world):
            further = after(world, step)
            if step.message:
                assert not makes_a_difference(further, step.stream, step.command), f"{step.command} counts twice"
            if further.identity not in reached:
                reached.add(further.identity)
                waiting.append(further)


def ends_of(start: World, steps: Steps = anything) -> set[tuple[str, ...]]:
    """Returns the ways in which orders and payments can end, and checks all promises on the way."""
    ends: set[tuple[str, ...]] = set()
    for world in every_world(start, steps):
        check_always(world)
        if is_at_rest(world):
            check_at_rest(world)
            shown = [h.state for stream, h in world.streams.items() if stream.startswith(("order:", "payment:"))]
            ends.add(tuple(type(state).__name__ for state in shown))
    return ends


def one_order(deciders: Deciders = DECIDERS, **supplied: int) -> World:
    """Orders one piece of each product; the shelves may have fewer or more."""
    return new_world([placed("first", dict.fromkeys(supplied, 1))], supplied, deciders)


def two_orders_for_the_last_piece(deciders: Deciders = DECIDERS) -> World:
    return new_world([placed("first", {"MUG": 1}), placed("second", {"MUG": 1})], {"MUG": 1}, deciders)


def left_alone(world: World) -> list[Step]:
    """Two orders have too many worlds for every disturbance, so here nobody cancels and no payment is held."""
    return [step for step in arrivals(world) if getattr(step.command, "risk", ALLOW) == ALLOW]


EVERY_END = {
    ("Confirmed", "Captured"),
    ("InReview", "Held"),
    ("Cancelled", "Unrequested"),
    ("Cancelled", "Declined"),
    ("Cancelled", "Cancelled"),
    ("Cancelled", "Voided"),
    ("Cancelled", "Refunded"),
}


def test_an_order_of_one_line_can_end_in_every_way_and_keeps_every_promise() -> None:
    assert ends_of(one_order(MUG=2)) == EVERY_END


def test_an_order_of_two_lines_can_end_in_every_way_and_keeps_every_promise() -> None:
    assert ends_of(one_order(MUG=1, POT=3)) == EVERY_END


def test_an_order_with_a_line_that_is_sold_out_is_cancelled_without_a_payment() -> None:
    assert ends_of(one_order(MUG=1, POT=0, PAN=1)) == {("Cancelled", "Unrequested")}


def test_at_most_one_of_two_orders_gets_the_last_piece() -> None:
    ends = {end[:2] for end in ends_of(two_orders_for_the_last_piece(), left_alone)}
    assert ends == {("Confirmed", "Cancelled"), ("Cancelled", "Confirmed"), ("Cancelled", "Cancelled")}


Decide = Callable[[Any, Any], list[Any]]


def planted(category: str, decide: Decide) -> Deciders:
    correct = DECIDERS[category]
    return {**DECIDERS, category: SimpleNamespace(initial=correct.initial, decide=decide, evolve=correct.evolve)}


def ignores_cancel_while(state: type) -> Deciders:
    """Plants a bug: a payment in this state ignores the cancellation of its order."""

    def decide(command: Any, at: Any) -> list[Any]:
        return [] if isinstance(command, CancelPayment) and isinstance(at, state) else list(payment.decide(command, at))

    return planted("payment", decide)


def forgetful_payment() -> Deciders:
    """Plants a bug: a payment forgets that the cancel came first."""

    def decide(command: Any, at: Any) -> list[Any]:
        is_late = isinstance(command, RequestPayment) and isinstance(at, payment.Unrequested)
        return list(payment.decide(command, payment.initial if is_late else at))

    return planted("payment", decide)


def hasty_payment() -> Deciders:
    """Plants a bug: a payment is captured as soon as it is authorised."""

    def decide(command: Any, at: Any) -> list[Any]:
        events = list(payment.decide(command, at))
        state = at
        for event in events:
            state = payment.evolve(state, event)
        return (
            events + list(payment.decide(CapturePayment(), state)) if isinstance(state, payment.Authorized) else events
        )

    return planted("payment", decide)


def careless_order(ignored_command: type) -> Deciders:
    """Plants a bug: a confirmed order ignores this command."""

    def decide(command: Any, at: Any) -> list[Any]:
        ignored = isinstance(command, ignored_command) and isinstance(at, order.Confirmed)
        return [] if ignored else list(order.decide(command, at))

    return planted("order", decide)


def forgetful_stock() -> Deciders:
    """Plants a bug: stock ignores a release that overtook its reservation."""

    def decide(command: Any, at: Any) -> list[Any]:
        early = isinstance(command, ReleaseStock) and at.shelf.orders.of(command.order_id) is None
        return [] if early else list(stock.decide(command, at))

    return planted("stock", decide)


def possessive_stock() -> Deciders:
    """Plants a bug: stock does not take sold pieces back."""

    def decide(command: Any, at: Any) -> list[Any]:
        return [event for event in stock.decide(command, at) if not isinstance(event, StockReturned)]

    return planted("stock", decide)


def generous_stock() -> Deciders:
    """Plants a bug: stock reserves more than there is."""

    def decide(command: Any, at: Any) -> list[Any]:
        if isinstance(command, ReserveStock) and at.shelf.orders.of(command.order_id) is None:
            return [StockReserved(command.sku, command.order_id, command.quantity)]
        return list(stock.decide(command, at))

    return planted("stock", decide)


BUGS: Mapping[str, tuple[Deciders, str]] = {
    "ignores the cancel while authorising": (
        ignores_cancel_while(payment.Authorizing),
        "an authorisation was left open",
    ),
    "ignores the cancel while authorised": (
        ignores_cancel_while(payment.Authorized),
        "an authorisation was left open",
    ),
    "ignores the cancel while capturing": (ignores_cancel_while(payment.Capturing), "money was kept"),
    "ignores the cancel once captured": (ignores_cancel_while(payment.Captured), "money was kept"),
    "ignores the cancel while held": (
        ignores_cancel_while(payment.Held),
        "an authorisation was left open",
    ),
    "forgets a cancel that came before the request": (forgetful_payment(), "an authorisation was left open"),
    "captures before the order is confirmed": (hasty_payment(), "not confirmed"),
    "an order that ignores a failed capture": (careless_order(RecordPaymentDeclined), "not paid"),
    "an order that ignores a refund": (careless_order(RecordPaymentRefunded), "not paid"),
    "stock that forgets a release": (forgetful_stock(), "pieces are kept"),
    "stock that takes nothing back": (possessive_stock(), "pieces stayed"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    deciders, promise = BUGS[bug]
    with pytest.raises(AssertionError, match=promise):
        ends_of(one_order(deciders, MUG=1))


def test_a_piece_promised_twice_is_found() -> None:
    with pytest.raises(AssertionError, match="promised twice"):
        ends_of(two_orders_for_the_last_piece(generous_stock()), left_alone)
