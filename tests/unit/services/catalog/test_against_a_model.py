"""Compares stock with a plain ledger while messages are repeated and out of order; checks I9 after every step."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from services.catalog import reservations
from services.catalog.commands import Command
from services.catalog.decider import Listed, Stock, decide, evolve, initial
from services.catalog.events import Event
from services.catalog.reservations import Bought, Held, Undone
from shared.errors import Refused
from tests.unit.services.catalog.words import (
    WITHDRAW,
    commit,
    put,
    rejected,
    release,
    released,
    reserve,
    reserved,
    returned,
    sold,
)

orders = st.integers(1, 12).map("order-{}".format)


class StockAgainstLedger(RuleBasedStateMachine):
    """The ledger has a column each for available, held and bought pieces, and a set of orders that are done."""

    stock: Stock = initial
    withdrawn = False
    available = 0
    supplied = 0
    sold = 0

    @initialize(stock=st.integers(0, 30))
    def list_it(self, stock: int) -> None:
        self.held: dict[str, int] = {}
        self.bought: dict[str, int] = {}
        self.done: set[str] = set()
        self.ask(put(stock=stock))
        self.available = self.supplied = stock

    def ask(self, command: Command) -> list[Event] | str:
        """Returns the events, or the code of the refusal."""
        try:
            events = decide(command, self.stock)
        except Refused as refusal:
            return refusal.code
        for event in events:
            self.stock = evolve(self.stock, event)
        return events

    @rule(order=orders, quantity=st.integers(1, 12))
    def reserve(self, order: str, quantity: int) -> None:
        answer = self.ask(reserve(order, quantity))
        on_offer = 0 if self.withdrawn else self.available
        if order in self.held or order in self.bought or order in self.done:
            assert answer == []
        elif quantity <= on_offer:
            assert answer == [reserved(order, quantity)]
            self.available -= quantity
            self.held[order] = quantity
        else:
            assert answer == [rejected(order, quantity, on_offer)]
            self.done.add(order)

    @rule(order=orders)
    def release(self, order: str) -> None:
        answer = self.ask(release(order, had=self.held.get(order, 0) or self.bought.get(order, 0)))
        if order in self.done:
            assert answer == []
        elif order in self.bought:
            pieces = self.bought.pop(order)
            assert answer == [returned(order, pieces)]
            self.available += pieces
            self.sold -= pieces
            self.done.add(order)
        else:
            pieces = self.held.pop(order, 0)
            assert answer == [released(order, pieces)]
            self.available += pieces
            self.done.add(order)

    @rule(order=orders)
    def commit(self, order: str) -> None:
        answer = self.ask(commit(order))
        if order in self.held:
            pieces = self.held.pop(order)
            assert answer == [sold(order, pieces)]
            self.sold += pieces
            self.bought[order] = pieces
        else:
            assert answer == ([] if order in self.bought or order in self.done else "reservation-unknown")

    @rule(stock=st.integers(0, 40))
    def count_the_shelf(self, stock: int) -> None:
        promised = sum(self.held.values())
        answer = self.ask(put(stock=stock))
        if stock < promised:
            assert answer == "stock-below-reserved"
        else:
            self.supplied += stock - (self.available + promised)
            self.available = stock - promised
            self.withdrawn = False

    @rule()
    def withdraw(self) -> None:
        self.ask(WITHDRAW)
        self.withdrawn = True

    @invariant()
    def available_reserved_and_sold_are_what_was_supplied(self) -> None:
        assert isinstance(self.stock, Listed)
        shelf = self.stock.shelf
        assert shelf.available >= 0
        assert (shelf.available, shelf.sold, shelf.supplied) == (self.available, self.sold, self.supplied)
        assert shelf.reserved == sum(self.held.values())
        assert shelf.available + shelf.reserved + shelf.sold == shelf.supplied

    @invariant()
    def each_order_holds_what_the_ledger_says(self) -> None:
        found = {f"order-{n}": self.stock.shelf.orders.of(f"order-{n}") for n in range(1, 13)}
        assert {order: it.pieces for order, it in found.items() if isinstance(it, Held)} == self.held
        assert {order: it.pieces for order, it in found.items() if isinstance(it, Bought)} == self.bought
        assert {order for order, it in found.items() if isinstance(it, Undone)} == self.done
        assert dict(self.stock.shelf.orders.holders()) == self.held


class StockThatMergesOften(StockAgainstLedger):
    """Runs the same comparison with the latest reservations merged at nearly every step."""

    def __init__(self) -> None:
        super().__init__()
        self.merge_at, reservations.MERGE_AT = reservations.MERGE_AT, 3

    def teardown(self) -> None:
        reservations.MERGE_AT = self.merge_at


TestStockAgainstLedger = StockAgainstLedger.TestCase
TestStockAgainstLedger.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStockThatMergesOften = StockThatMergesOften.TestCase
TestStockThatMergesOften.settings = TestStockAgainstLedger.settings
