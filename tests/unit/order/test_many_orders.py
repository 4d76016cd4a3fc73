"""Several orders for the same few pieces, anything in between, in any order: the promises hold for all of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.order.decider import Cancelled, Confirmed
from tests.unit.order.promises import check_always, check_at_rest, orders
from tests.unit.order.world import EXPIRE, Step, World, after, arrivals, is_at_rest, new_world, placed, wishes

baskets = st.dictionaries(st.sampled_from(["MUG", "POT"]), st.integers(1, 3), min_size=1)
picks = st.lists(st.integers(0, 1_000_000), min_size=1, max_size=80)
WISHES_ARE_RARE = 10


def gone_on(world: World, picks: list[int]) -> World:
    for pick in picks:
        number, chance = divmod(pick, WISHES_ARE_RARE)
        possible = (wishes(world) if chance == 0 else arrivals(world)) or arrivals(world) or wishes(world)
        world = after(world, possible[number % len(possible)]) if possible else world
        check_always(world)
    return world


def brought_to_rest(world: World, picks: list[int]) -> World:
    """Whatever is still on its way arrives."""
    step = 0
    while not is_at_rest(world):
        pending = [it for it in arrivals(world) if it.message not in world.heard]
        world = after(world, pending[picks[step % len(picks)] % len(pending)])
        check_always(world)
        step += 1
    return world


def past_all_deadlines(world: World) -> World:
    for stream in world.streams:
        if stream.startswith("order:"):
            world = after(world, Step(stream, EXPIRE))
    return world


@settings(max_examples=400, deadline=None)
@given(st.lists(baskets, min_size=1, max_size=5), st.integers(0, 8), st.integers(0, 8), picks)
def test_promises_are_kept_to_everyone(baskets: list[dict[str, int]], mugs: int, pots: int, picks: list[int]) -> None:
    placed_orders = [placed(f"order-{number}", basket) for number, basket in enumerate(baskets)]
    world = gone_on(new_world(placed_orders, {"MUG": mugs, "POT": pots}), picks)

    world = brought_to_rest(world, picks)
    check_at_rest(world)

    world = brought_to_rest(past_all_deadlines(world), picks)
    check_at_rest(world)
    assert all(isinstance(order.state, Confirmed | Cancelled) for order in orders(world))
