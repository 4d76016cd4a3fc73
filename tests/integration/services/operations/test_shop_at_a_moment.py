"""`till at`: the whole shop at a moment, and no effect without its cause, whatever the clocks of services say."""

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from infra.cli.render.program import program
from infra.settings import Settings
from services.cart.events import CartOpened
from services.catalog.events import StockReserved, StockSold
from services.operations.history.cut import Cut, CutLog, find_cut, open_snapshot
from services.operations.history.shop_state import ShopState, fold_shop
from services.operations.reading.stores import open_stores
from services.order.events import LineReserved, OrderConfirmed, PaymentRequested
from services.payment.events import AuthorizationRequested, CaptureRequested, PaymentAuthorized, PaymentCaptured
from shared.store.database import Connection
from tests.integration.services.story import TOTAL, Story, asked_to_pay, checked_out, listed, place
from tests.integration.services.written import ANN, Pen, written_shop
from tests.till import RunTill, run_in_process

NOON = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def database(stack: Settings) -> Iterator[Pen]:
    with written_shop(stack, NOON) as pen:
        yield pen


@pytest.fixture
def pen(database: Pen) -> Pen:
    """A shop without events but one listed product."""
    for service in ("cart", "order", "payment", "catalog"):
        database.execute(service, "TRUNCATE events, snapshots, milestones, deadlines")
    database.versions.clear()
    database.at = NOON
    listed(database, "MUG-350")
    return database


@pytest.fixture
def till(pen: Pen, stack_environment: dict[str, str]) -> RunTill:
    return run_in_process(stack_environment | pen.environment)


def shop_at(till: RunTill, moment: datetime) -> Any:
    ran = till("at", moment.isoformat(), "--json")
    assert ran.code == 0, ran.err
    return ran.document


def taken_back(shop: Any) -> dict[str, int]:
    return {service: reach["taken_back"] for service, reach in shop["reached"].items() if reach["taken_back"]}


def bought(pen: Pen) -> Story:
    story = asked_to_pay(pen, "MUG-350")
    order_id, payment_id = story.order_id, story.payment_id
    authorized = PaymentAuthorized(payment_id, order_id, ANN, TOTAL, "ref-1")
    story.record("payment", authorized, because="AuthorizationRequested")
    confirmed = OrderConfirmed(order_id, payment_id, ANN, story.lines, TOTAL)
    story.record("order", confirmed, because="PaymentAuthorized")
    story.record("stock", StockSold("MUG-350", order_id, 2), because="OrderConfirmed")
    story.record("payment", CaptureRequested(payment_id, order_id), because="OrderConfirmed")
    captured = PaymentCaptured(payment_id, order_id, ANN, TOTAL, "ref-1")
    story.record("payment", captured, because="CaptureRequested")
    return story


def test_the_shop_at_each_step_of_an_order(pen: Pen, till: RunTill) -> None:
    story = bought(pen)
    pen.at += MINUTE
    checked_out(pen, "MUG-350")

    early = shop_at(till, story.events["ItemAdded"].time)
    assert (early["carts"], early["in_open_carts"], early["orders"]) == ({"open": 1}, {"EUR": 2380}, {})

    reserved = shop_at(till, story.events["AuthorizationRequested"].time)
    assert (reserved["orders"], reserved["payments"]) == ({"reserved": 1}, {"authorizing": 1})
    assert reserved["money"] == {"EUR": {"placed": 2380}}
    assert {name: reserved["stock"][name] for name in ("available", "reserved", "sold", "supplied")} == {
        "available": 8,
        "reserved": 2,
        "sold": 0,
        "supplied": 10,
    }

    done = shop_at(till, story.events["PaymentCaptured"].time)
    assert (done["orders"], done["payments"]) == ({"confirmed": 1}, {"captured": 1})
    assert done["money"] == {"EUR": dict.fromkeys(("placed", "confirmed", "authorised", "captured"), 2380)}
    assert done["stock"]["movers"] == [{"sold": 2, "sku": "MUG-350", "name": "Enamel mug"}]
    assert done["carts"] == {"checked_out": 1}
    assert taken_back(done) == {}
    assert done["reached"]["payment"]["events"] == 4
    assert done["lake"] == {"tables": [], "error": None}

    ran = till("at", "-1h")
    assert "1 confirmed" in ran.out
    assert "2 checked_out" in ran.out
    assert "captured    23.80" in ran.out


def test_an_effect_that_is_dated_before_its_cause_waits_for_it(pen: Pen, till: RunTill) -> None:
    """The clock of the order service is an hour behind, so by the dates there is an order without a checkout."""
    story = checked_out(pen, "MUG-350")
    checkout = story.events["CartCheckedOut"]
    early = checkout.time - 60 * MINUTE
    place(story, at=early)

    between = early + 30 * MINUTE
    shop = shop_at(till, between)
    assert (shop["orders"], shop["money"], taken_back(shop)) == ({}, {}, {"order": 1})
    printed = till("at", between.isoformat()).out
    assert "Taken back: events dated before this moment whose causes are dated after it." in printed

    later = shop_at(till, checkout.time)
    assert (later["orders"], taken_back(later)) == ({"placed": 1}, {})


def test_all_later_effects_of_an_event_that_is_taken_back_are_taken_back_too(pen: Pen, till: RunTill) -> None:
    """Order, stock and payment are all dated early, and follow from a checkout that has not happened yet."""
    story = checked_out(pen, "MUG-350")
    early = story.events["CartCheckedOut"].time - 60 * MINUTE
    order_id, payment_id = story.order_id, story.payment_id
    place(story, at=early)
    story.record("stock", StockReserved("MUG-350", order_id, 2), because="OrderPlaced", at=early + MINUTE)
    requested = PaymentRequested(order_id, payment_id, ANN, TOTAL, "tok_ok")
    reserved = LineReserved(order_id, "MUG-350")
    story.record("order", reserved, requested, because="StockReserved", at=early + 2 * MINUTE)
    asked = AuthorizationRequested(payment_id, order_id, ANN, TOTAL, "tok_ok")
    story.record("payment", asked, because="PaymentRequested", at=early + 3 * MINUTE)

    shop = shop_at(till, early + 30 * MINUTE)
    assert taken_back(shop) == {"order": 3, "catalog": 1, "payment": 1}
    assert (shop["orders"], shop["payments"], shop["stock"]["reserved"]) == ({}, {}, 0)


def test_no_clock_can_make_a_cut_show_an_effect_without_its_cause(pen: Pen) -> None:
    """Every service's clock is off by another amount, and still every cut holds the causes of all its events."""
    bought(pen)
    bought(pen)
    skews = {"cart": 0, "order": -70, "catalog": 30, "payment": -110}
    for service, milliseconds in skews.items():
        pen.execute(service, "UPDATE events SET time = time + $1 * interval '1 millisecond'", milliseconds)
    rows = [
        row
        for service in skews
        for row in pen.execute(service, "SELECT event_id::text AS id, causation_id AS cause, time FROM events")
    ]
    causes = {row["id"]: row["cause"] for row in rows}
    moments = sorted({row["time"] for row in rows})
    cuts = asyncio.run(ids_in_cuts(pen, moments))
    for moment, shown in zip(moments, cuts, strict=True):
        assert all(causes[event_id] in shown for event_id in shown if causes[event_id] in causes), moment
        assert shown <= {row["id"] for row in rows if row["time"] <= moment}
    assert len(cuts[-1]) == len(rows)
    assert all(fewer <= more for fewer, more in pairwise(cuts)), "what was shown once is shown later"
    naive = [sum(row["time"] <= moment for row in rows) for moment in moments]
    assert naive != [len(shown) for shown in cuts], "the clocks agree too well: nothing is shown here"


async def ids_in_cuts(pen: Pen, moments: Sequence[datetime]) -> list[set[str]]:
    async with open_stores(pen.settings.database_url.get_secret_value()) as stores, open_snapshot(stores) as connection:
        cuts = [await find_cut(connection, stores.keys(), moment) for moment in moments]
        return [await ids_in_cut(connection, stores.keys(), cut) for cut in cuts]


async def ids_in_cut(connection: Connection, services: Iterable[str], cut: Cut) -> set[str]:
    found: set[str] = set()
    for service in services:
        shown = Counter([stream_id async for stream_id, _ in CutLog(service, connection, cut).values()])
        rows = await connection.fetch(f'SELECT event_id::text, stream_id, version FROM "{service}".events')
        found |= {event_id for event_id, stream_id, version in rows if version <= shown[stream_id]}
    return found


def test_a_stream_ends_before_its_first_event_that_is_dated_later(pen: Pen, till: RunTill) -> None:
    story = asked_to_pay(pen, "MUG-350")
    moment = pen.at + MINUTE
    # Another server's clock: the second version of the order is dated later than the third.
    pen.execute(
        "order",
        "UPDATE events SET time = $2 WHERE stream_id = $1 AND version = 2",
        story.streams["order"],
        pen.at + 9 * MINUTE,
    )
    shop = shop_at(till, moment)
    assert (shop["orders"], shop["payments"]) == ({"placed": 1}, {})
    assert taken_back(shop) == {"order": 1, "payment": 1}


CARTS = """
INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
SELECT 'cart:' || gen_random_uuid(), 1, uuidv7(), 'CartOpened', $1, '', '', '', '', $2 FROM generate_series(1, $3::int)
"""


def test_memory_does_not_grow_with_the_number_of_events(pen: Pen) -> None:
    opened = pen.codec.encode(CartOpened(ANN, 1))
    peaks = []
    for more in (3_000, 9_000):
        pen.execute("cart", CARTS, NOON, opened, more)
        shop, peak = asyncio.run(fold_and_measure(pen))
        peaks.append(peak)
    assert shop.carts == {"open": 12_000}
    assert peaks[1] < 1.3 * peaks[0], peaks


async def fold_and_measure(pen: Pen) -> tuple[ShopState, int]:
    """Folds the shop, and returns the peak of Python's memory in bytes with it."""
    async with open_stores(pen.settings.database_url.get_secret_value()) as stores:
        tracemalloc.start()
        try:
            return await fold_shop(stores, NOON + MINUTE), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_a_moment_before_the_first_event_gives_one_line_and_exit_code_2(pen: Pen, till: RunTill) -> None:
    ran = till("at", "2020-01-01T00:00:00Z")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: The shop had not opened then. It opened at 20")
    assert ran.err.count("\n") == 1
    for wrong in ("2999-01-01T00:00:00Z", "yesterday"):
        assert till("at", wrong).code == 2
    nowhere = till("at", "-1h", TILL_DATABASE_URL="postgresql://till:@127.0.0.1:1/till")
    assert nowhere.code == 2
    assert nowhere.err.startswith("error: PostgreSQL does not answer")


@pytest.mark.parametrize("ago", ["-2h", "-7200s", "-1h30m"])
def test_a_time_like_minus_2h_is_not_taken_for_an_option(pen: Pen, till: RunTill, ago: str) -> None:
    assert till("at", ago).out.startswith("The shop at 20")


def test_a_shop_without_events_gives_a_hint_what_to_do(pen: Pen, till: RunTill) -> None:
    pen.execute("catalog", "TRUNCATE events")
    ran = till("at", "-1h")
    assert (ran.code, ran.err) == (
        2,
        f"error: Nothing has happened in this shop yet. Let somebody buy: {program()} simulate\n",
    )
