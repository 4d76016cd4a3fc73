"""Compares a cart with a plain dict through any sequence of commands, price changes and waiting."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.cart.commands import AbandonCart, AddItem, CheckOut, Command, OpenCart, Product, RemoveItem, SetQuantity
from services.cart.decider import MAX_QUANTITY, Abandoned, Cart, CheckedOut, Empty, Open, decide, evolve, initial
from services.cart.events import CartCheckedOut
from services.common.money import Money
from shared.errors import Refused
from tests.unit.services.cart.words import ANN, HOUR, NOON, ORDER, euro

skus = st.sampled_from(["MUG", "POT", "PAN", "CUP"])
quantities = st.integers(-2, 102) | st.integers(1, 9)


class CartAgainstModel(RuleBasedStateMachine):
    cart: Cart = initial
    now = NOON
    touched = NOON
    closed_by = ""

    @initialize()
    def open(self) -> None:
        self.products = {sku: Product(sku.title(), euro(1000)) for sku in ("MUG", "POT", "PAN")}
        self.basket: dict[str, tuple[int, Money]] = {}
        assert self.ask(OpenCart(ANN, self.now)) == ""

    def ask(self, command: Command) -> str:
        """Runs the command, folds its events, and returns the code of the refusal or an empty string."""
        try:
            events = decide(command, self.cart)
        except Refused as refusal:
            return refusal.code
        for event in events:
            self.cart = evolve(self.cart, event)
            if isinstance(event, CartCheckedOut):
                assert event.total == euro(sum(count * price.amount for count, price in self.basket.values()))
        return ""

    def refusal_of(self, sku: str, quantity: int, already: int = 0) -> str:
        if sku not in self.products:
            return "product-unknown"
        if self.products[sku].withdrawn:
            return "product-withdrawn"
        return "" if 1 <= quantity <= MAX_QUANTITY - already else "quantity-out-of-range"

    def put(self, sku: str, quantity: int) -> None:
        self.basket[sku] = quantity, self.products[sku].price
        self.touched = self.now

    @rule(sku=skus, quantity=quantities)
    def add(self, sku: str, quantity: int) -> None:
        already = self.basket[sku][0] if sku in self.basket else 0
        expected = self.closed_by or self.refusal_of(sku, quantity, already)
        assert self.ask(AddItem(ANN, sku, quantity, self.products.get(sku), self.now)) == expected
        if not expected:
            self.put(sku, already + quantity)

    @rule(sku=skus, quantity=quantities)
    def set_quantity(self, sku: str, quantity: int) -> None:
        missing = "" if sku in self.basket else "line-unknown"
        expected = self.closed_by or missing or self.refusal_of(sku, quantity)
        assert self.ask(SetQuantity(ANN, sku, quantity, self.products.get(sku), self.now)) == expected
        if not expected and self.basket[sku] != (quantity, self.products[sku].price):
            self.put(sku, quantity)

    @rule(sku=skus)
    def remove(self, sku: str) -> None:
        expected = self.closed_by or ("" if sku in self.basket else "line-unknown")
        assert self.ask(RemoveItem(ANN, sku, self.now)) == expected
        if not expected:
            del self.basket[sku]
            self.touched = self.now

    @precondition(lambda self: len(self.basket) != 1)  # rarely: it ends the game
    @rule()
    def check_out(self) -> None:
        wanted = [self.products[sku] for sku in self.basket]
        expected = self.closed_by
        if not expected and not self.basket:
            expected = "cart-empty"
        if not expected and any(product.withdrawn for product in wanted):
            expected = "product-withdrawn"
        if not expected and any(p.price != price for p, (_, price) in zip(wanted, self.basket.values(), strict=True)):
            expected = "price-changed"
        assert self.ask(CheckOut(ANN, ORDER, self.products, "tok_ok", "standard", "sealed")) == expected
        if not expected:
            self.closed_by = "cart-checked-out"

    @rule(sku=st.sampled_from(["MUG", "POT", "PAN"]), cents=st.sampled_from([1000, 1100]))
    def change_price(self, sku: str, cents: int) -> None:
        self.products[sku] = replace(self.products[sku], price=euro(cents))

    @rule(sku=st.sampled_from(["MUG", "POT", "PAN"]), withdrawn=st.booleans())
    def withdraw_or_relist(self, sku: str, withdrawn: bool) -> None:
        self.products[sku] = replace(self.products[sku], withdrawn=withdrawn)

    @rule(ms=st.integers(0, HOUR // 3))
    def wait(self, ms: int) -> None:
        self.now += ms
        assert self.ask(AbandonCart(HOUR, self.now)) == ""
        if not self.closed_by and self.now >= self.touched + HOUR:
            self.closed_by = "cart-abandoned"

    @rule()
    def a_stranger_finds_nothing(self) -> None:
        assert self.ask(RemoveItem("a stranger", "MUG", self.now)) == "cart-unknown"

    @invariant()
    def the_cart_is_what_the_model_says(self) -> None:
        state = {"": Open, "cart-checked-out": CheckedOut, "cart-abandoned": Abandoned}[self.closed_by]
        assert isinstance(self.cart, state)
        assert not isinstance(self.cart, Empty)
        assert {s: (line.quantity, line.unit_price) for s, line in self.cart.lines.items()} == self.basket


TestCartAgainstModel = CartAgainstModel.TestCase
TestCartAgainstModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
