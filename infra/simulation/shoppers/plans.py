"""Plans the visits of a shopper by seed: most look around, some buy, a few are fraudulent."""

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

from infra.simulation.shoppers.fraud import PATTERNS
from infra.simulation.shoppers.steps import (
    Add,
    Arrive,
    Await,
    Browse,
    Cancel,
    CheckOut,
    Look,
    OpenCart,
    Pause,
    Product,
    Remove,
    SetQuantity,
    Step,
    Visit,
)

TOKENS = {"tok_ok": 88, "tok_declined": 4, "tok_insufficient_funds": 4, "tok_flaky": 3, "tok_timeout": 1}
BROWSES_ONLY, ABANDONS, CHANGES_MIND, CLICKS_TWICE, CANCELS, TOO_LATE = 0.25, 0.25, 0.3, 0.08, 0.12, 0.5
THINKS_SECONDS = 0.25


def visits(seed: int, shopper: int, fraud: float, products: Sequence[Product]) -> Iterator[Visit]:
    """Yields visits without end. The same arguments give the same visits."""
    for number in count():
        chance = Random(f"{seed}/{shopper}/{number}")
        plan = chance.choice(PATTERNS) if chance.random() < fraud else honest
        yield plan(chance, products)


def honest(chance: Random, products: Sequence[Product]) -> Visit:
    looking = _look_around(chance, products)
    if chance.random() < BROWSES_ONLY:
        return _visit("browse", chance, looking)
    filling = _fill_cart(chance, products)
    if chance.random() < ABANDONS:
        return _visit("abandon", chance, [*looking, *filling])
    clicks = 2 if chance.random() < CLICKS_TWICE else 1
    buying = CheckOut(chance.choices(list(TOKENS), list(TOKENS.values()))[0], clicks)
    if chance.random() < CANCELS:
        late = [Await("approve"), Cancel(insist=True)]  # only support can cancel then
        regretting = late if chance.random() < TOO_LATE else [Cancel(insist=False)]
        return _visit("cancel", chance, [*looking, *filling, buying], *regretting)
    return _visit("buy", chance, [*looking, *filling, buying], Await("approve"))


def _visit(kind: str, chance: Random, steps: Sequence[Step], *at_once: Step) -> Visit:
    """Adds time to think before each step, except the last ones."""
    thinking = [it for step in steps for it in (Pause(chance.expovariate(1 / THINKS_SECONDS)), step)]
    return Visit(kind, (Arrive(), *thinking, *at_once))


def _look_around(chance: Random, products: Sequence[Product]) -> list[Step]:
    pages = [Browse(chance.choice(["", chance.choice(products).sku])) for _ in range(chance.randint(1, 2))]
    return [*pages, *(Look(it.sku) for it in _some(chance, products, chance.randint(0, 2)))]


def _fill_cart(chance: Random, products: Sequence[Product]) -> list[Step]:
    chosen = _some(chance, products, chance.choices([1, 2, 3, 4], [5, 3, 2, 1])[0])
    steps: list[Step] = [OpenCart(), *(Add(it.sku, chance.choices([1, 2, 3], [7, 2, 1])[0]) for it in chosen)]
    if chance.random() < CHANGES_MIND:
        regretted = chosen[-1].sku
        removed = len(chosen) > 1 and chance.random() < 0.5
        steps.append(Remove(regretted) if removed else SetQuantity(regretted, chance.randint(1, 4)))
    return steps


def _some(chance: Random, products: Sequence[Product], number: int) -> list[Product]:
    """Chooses different products. The first of the assortment are the most popular."""
    chosen = {int(len(products) * chance.random() ** 2) for _ in range(number)}
    return [products[index] for index in sorted(chosen)]
