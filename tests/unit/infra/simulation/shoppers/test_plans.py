"""Plans of shoppers: the same for the same seed, plausible as a whole, and with patterns of fraud."""

from collections import Counter
from itertools import islice
from random import Random

from infra.simulation.shoppers.fraud import LARGE_BASKET, card_testing, large_basket, many_accounts
from infra.simulation.shoppers.plans import visits
from infra.simulation.shoppers.steps import Add, Arrive, Await, Cancel, CheckOut, OpenCart, Pause, Product, Visit

PRODUCTS = [Product(f"SKU-{number}", 100 + 700 * number, 10 + number) for number in range(40)]


def planned(seed: int = 1, shopper: int = 1, fraud: float = 0.0, number: int = 50) -> list[Visit]:
    return list(islice(visits(seed, shopper, fraud, PRODUCTS), number))


def tokens(visit: Visit) -> list[str]:
    return [step.token for step in visit.steps if isinstance(step, CheckOut)]


def test_the_same_seed_makes_the_same_choices() -> None:
    assert planned(seed=7, fraud=0.2) == planned(seed=7, fraud=0.2)
    assert planned(seed=7) != planned(seed=8)
    assert planned(shopper=1) != planned(shopper=2)


def test_shoppers_do_everything_that_people_do() -> None:
    made = [visit for shopper in range(20) for visit in planned(shopper=shopper)]
    kinds = Counter(visit.kind for visit in made)
    assert kinds.keys() == {"browse", "abandon", "buy", "cancel"}
    assert kinds["buy"] > len(made) / 4
    cancelling = [visit.steps[-2:] for visit in made if visit.kind == "cancel"]
    assert any(Cancel(insist=False) == last and isinstance(before, CheckOut) for before, last in cancelling)
    assert any(Cancel(insist=True) == last and isinstance(before, Await) for before, last in cancelling)
    used = Counter(token for visit in made for token in tokens(visit))
    assert used.keys() == {"tok_ok", "tok_declined", "tok_insufficient_funds", "tok_flaky", "tok_timeout"}
    assert used["tok_ok"] > 0.8 * used.total()


def test_the_share_of_fraud_is_the_requested_one() -> None:
    def share(fraud: float) -> float:
        made = [visit for shopper in range(20) for visit in planned(shopper=shopper, fraud=fraud)]
        return sum(visit.kind in ("card testing", "many accounts", "large basket") for visit in made) / len(made)

    assert share(0) == 0
    assert 0.15 < share(0.2) < 0.25
    assert share(1) == 1


def test_a_card_tester_is_one_customer_with_small_payments_in_a_burst() -> None:
    visit = card_testing(Random(1), PRODUCTS)
    assert sum(isinstance(step, Arrive) for step in visit.steps) == 1
    assert len(tokens(visit)) >= 12
    assert all(token.startswith(("tok_declined", "tok_insufficient_funds")) for token in tokens(visit))
    burst = visit.steps[: 1 + 12 * 3]
    assert not any(isinstance(step, Pause) for step in burst)


def test_many_accounts_use_one_token_that_nobody_else_has() -> None:
    one, other = many_accounts(Random(1), PRODUCTS), many_accounts(Random(2), PRODUCTS)
    assert sum(isinstance(step, Arrive) for step in one.steps) == len(tokens(one)) == 12
    assert len(set(tokens(one)) | set(tokens(other))) == 2


def test_a_large_basket_follows_on_small_purchases() -> None:
    prices = {product.sku: product.price for product in PRODUCTS}
    worth: list[int] = []
    for step in large_basket(Random(1), PRODUCTS).steps:
        if isinstance(step, OpenCart):
            worth.append(0)
        elif isinstance(step, Add):
            worth[-1] += step.quantity * prices[step.sku]
    assert worth[-1] >= LARGE_BASKET
    assert worth[-1] > 10 * max(worth[:-1])
