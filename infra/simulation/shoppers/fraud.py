"""Fraudulent visits, in the patterns that a risk check is meant to catch."""

from collections.abc import Callable, Sequence
from random import Random
from string import ascii_lowercase

from infra.simulation.shoppers.steps import (
    Add,
    Arrive,
    Await,
    CheckOut,
    Decision,
    OpenCart,
    Pause,
    Product,
    Step,
    Visit,
)

CARDS_IN_A_BURST, CARDS_AFTER_IT = 12, 3
ACCOUNTS_ON_ONE_CARD = 12
USUAL_PURCHASES = 3
LARGE_BASKET = 600_000
"""More than a new customer spends, in minor units."""
MOST_PIECES = 20
DECISIONS: list[Decision] = ["", "", "reject", "reject", "approve"]


def card_testing(chance: Random, products: Sequence[Product]) -> Visit:
    """Plans a burst of small payments that tests which cards work, and a few more after most were declined."""
    cheap = sorted(products, key=lambda product: product.price)[:10]
    burst, rest = (
        [step for _ in range(count) for step in _buy(chance.choice(cheap), _bad_card(chance))]
        for count in (CARDS_IN_A_BURST, CARDS_AFTER_IT)
    )
    return Visit("card testing", (Arrive(), *burst, Await(), Pause(0.5), *rest, Await()))


def many_accounts(chance: Random, products: Sequence[Product]) -> Visit:
    """Plans purchases with one card and a new customer each. Support approves a few of them."""
    token = "tok_ok_" + "".join(chance.choices(ascii_lowercase, k=12))
    steps: list[Step] = []
    for _ in range(ACCOUNTS_ON_ONE_CARD):
        steps += [Arrive(), *_buy(chance.choice(products), token), Await(chance.choice(DECISIONS))]
    return Visit("many accounts", tuple(steps))


def large_basket(chance: Random, products: Sequence[Product]) -> Visit:
    """Plans a few small purchases, then suddenly a large basket of the most expensive products."""
    cheap = sorted(products, key=lambda product: product.price)[:20]
    steps: list[Step] = [Arrive()]
    for _ in range(USUAL_PURCHASES):
        steps += [*_buy(chance.choice(cheap), "tok_ok"), Await()]
    steps += [Pause(0.5), OpenCart(), *_most_expensive(products), CheckOut("tok_ok"), Await(chance.choice(DECISIONS))]
    return Visit("large basket", tuple(steps))


PATTERNS: list[Callable[[Random, Sequence[Product]], Visit]] = [card_testing, many_accounts, large_basket]


def _buy(product: Product, token: str) -> list[Step]:
    return [OpenCart(), Add(product.sku), CheckOut(token)]


def _bad_card(chance: Random) -> str:
    kind = chance.choice(["tok_declined", "tok_insufficient_funds"])
    return f"{kind}_{''.join(chance.choices(ascii_lowercase, k=8))}" if chance.random() < 0.1 else kind


def _most_expensive(products: Sequence[Product]) -> list[Step]:
    """Adds products, the most expensive first, until the basket is large."""
    steps: list[Step] = []
    worth = 0
    for product in sorted(products, key=lambda product: product.price, reverse=True):
        pieces = min(MOST_PIECES, product.available // 2)
        if worth >= LARGE_BASKET or not pieces:
            continue
        worth += pieces * product.price
        steps.append(Add(product.sku, pieces))
    return steps
