"""Several orders compete for the same few pieces, with disturbances in any order, and the promises hold for all."""

from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from services.order.decider import Cancelled, Confirmed
from tests.unit.services.order.promises import check_always, check_at_rest, orders
from tests.unit.services.order.world import (
    EXPIRE,
    Step,
    World,
    after,
    arrivals,
    is_at_rest,
    new_world,
    placed,
    wishes,
)

baskets = st.dictionaries(st.sampled_from(["MUG", "POT"]), st.integers(1, 3), min_size=1)
picks = st.lists(st.integers(0, 1_000_000), min_size=1, max_size=120)
ONE_IN = 20
"""One step in this many is a disturbance or a refusal; with more of them, hardly any order would be paid."""


def usual(steps: list[Step]) -> list[Step]:
    """Keeps the successful outcome of each message, which is its first command."""
    return [step for step in steps if step.message and step.command is step.message.commands[0]]


def take_steps(world: World, picks: list[int]) -> World:
    for pick in picks:
        number, chance = divmod(pick, ONE_IN)
        arriving = arrivals(world)
        possible = {0: wishes(world), 1: arriving}.get(chance) or usual(arriving) or arriving
        world = after(world, possible[number % len(possible)]) if possible else world
        check_always(world)
    return world


def deliver_everything(world: World, picks: list[int]) -> World:
    """Delivers every message that is still on its way."""
    for pick in cycle(picks):
        if is_at_rest(world):
            break
        number, chance = divmod(pick, ONE_IN)
        pending = [step for step in arrivals(world) if step.message not in world.delivered]
        possible = pending if chance == 0 else usual(pending) or pending
        world = after(world, possible[number % len(possible)])
        check_always(world)
    return world


def expire_all_orders(world: World) -> World:
    for stream in world.streams:
        if stream.startswith("order:"):
            world = after(world, Step(stream, EXPIRE))
    return world


@settings(max_examples=200, deadline=None)
@given(st.lists(baskets, min_size=1, max_size=5), st.integers(0, 12), st.integers(0, 12), picks)
def test_the_promises_hold_for_every_order(
    baskets: list[dict[str, int]], mugs: int, pots: int, picks: list[int]
) -> None:
    placed_orders = [placed(f"order-{number}", basket) for number, basket in enumerate(baskets)]
    world = take_steps(new_world(placed_orders, {"MUG": mugs, "POT": pots}), picks)

    world = deliver_everything(world, picks)
    check_at_rest(world)

    world = deliver_everything(expire_all_orders(world), picks)
    check_at_rest(world)
    assert all(isinstance(order.state, Confirmed | Cancelled) for order in orders(world))
