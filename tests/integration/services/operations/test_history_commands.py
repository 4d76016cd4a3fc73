"""`till history`, `state`, `diff` and `why` on events that were written by hand, and their answers to bad input."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from uuid_utils import uuid7

from infra.cli.render.program import program
from infra.local.processes.ports import free_ports
from infra.settings import Settings
from services.cart.events import CartOpened
from services.catalog.events import ProductListed, StockReleased, StockReserved
from services.order.events import LineReserved, OrderCancelled, OrderHeld, PaymentRequested
from services.payment.events import PaymentAuthorized, PaymentCancelled, PaymentHeldForReview, VoidRequested
from tests.integration.services.story import SECRET, TOTAL, Story, asked_to_pay, listed, placed
from tests.integration.services.written import ANN, Pen, written_shop
from tests.till import Ran, RunTill, run_in_process

NOON = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
DUE = NOON + timedelta(hours=3, seconds=-1)


@pytest.fixture(scope="module")
def pen(stack: Settings) -> Iterator[Pen]:
    with written_shop(stack, NOON) as pen:
        listed(pen, "MUG-350")
        yield pen


@pytest.fixture(scope="module")
def till(pen: Pen, stack_environment: dict[str, str]) -> RunTill:
    return run_in_process(stack_environment | pen.environment)


@pytest.fixture(scope="module")
def undone(pen: Pen) -> Story:
    """An order that its deadline cancelled; then the provider authorised, and was asked to void. No answer yet."""
    story = asked_to_pay(pen, "MUG-350")
    order_id, payment_id = story.order_id, story.payment_id
    timeout = OrderCancelled(order_id, payment_id, ANN, "timeout", story.lines)
    story.record("order", timeout, because="OrderPlaced", actor="system:deadline")
    story.record("payment", PaymentCancelled(payment_id, order_id), because="OrderCancelled")
    story.record("stock", StockReleased(story.sku, order_id, 2), because="OrderCancelled")
    late = PaymentAuthorized(payment_id, order_id, ANN, TOTAL, "ref-1")
    story.record("payment", late, VoidRequested(payment_id, order_id), because="AuthorizationRequested")
    pen.execute("payment", "INSERT INTO deadlines VALUES ($1, $2)", story.streams["payment"], DUE)
    return story


def document(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return ran.document


def fields(changes: list[dict[str, Any]]) -> dict[str, tuple[Any, Any]]:
    return {change["field"]: (change["before"], change["after"]) for change in changes}


def test_history_shows_what_each_event_changed(till: RunTill, undone: Story) -> None:
    events = document(till("history", undone.streams["order"], "--json"))["events"]
    assert [event["type"] for event in events] == ["OrderPlaced", "LineReserved", "PaymentRequested", "OrderCancelled"]
    assert fields(events[0]["changes"])["status"] == (None, "placed")
    assert fields(events[2]["changes"])["status"] == ("placed", "reserved")
    assert fields(events[3]["changes"]) == {"status": ("reserved", "cancelled"), "reason": (None, "timeout")}
    ran = till("history", undone.streams["order"])
    assert "status  reserved → cancelled" in ran.out
    assert "2 h ago" in ran.out


def test_history_of_the_last_events_is_folded_from_where_they_begin(till: RunTill, undone: Story) -> None:
    [event] = document(till("history", undone.streams["order"], "--last", "1", "--json"))["events"]
    assert fields(event["changes"])["status"] == ("reserved", "cancelled")


def test_history_of_a_product_says_which_order_holds_what(till: RunTill, undone: Story) -> None:
    events = document(till("history", undone.streams["stock"], "--json"))["events"]
    [reserved] = [e for e in events if e["type"] == "StockReserved" and e["data"]["order_id"] == undone.order_id]
    changed = fields(reserved["changes"])
    assert changed.pop(f"orders.{undone.order_id}") == (None, "holds 2")
    assert {name: after - before for name, (before, after) in changed.items()} == {"available": -2, "reserved": 2}


@pytest.mark.parametrize("category", ["cart", "order", "payment"])
def test_cart_order_and_payment_lead_to_the_same_related_history(till: RunTill, undone: Story, category: str) -> None:
    events = document(till("history", undone.streams[category], "--related", "--json"))["events"]
    assert [event["type"] for event in events] == [
        "CartOpened",
        "ItemAdded",
        "CartCheckedOut",
        "OrderPlaced",
        "StockReserved",
        "LineReserved",
        "PaymentRequested",
        "AuthorizationRequested",
        "OrderCancelled",
        "PaymentCancelled",
        "StockReleased",
        "PaymentAuthorized",
        "VoidRequested",
    ]
    assert {event["service"] for event in events} == {"cart", "order", "payment", "catalog"}


def test_the_related_history_of_a_product_holds_the_orders_of_its_last_events(till: RunTill, undone: Story) -> None:
    events = document(till("history", undone.streams["stock"], "--related", "--last", "1", "--json"))["events"]
    assert events[0]["type"] == "CartOpened"
    assert {event["stream"] for event in events} == set(undone.streams.values())


def test_an_event_of_another_order_with_the_same_correlation_id_is_not_in_the_story(till: RunTill, pen: Pen) -> None:
    story = placed(pen, "MUG-350")
    request = story.events["OrderPlaced"].correlation_id
    pen.write("stock:MUG-350", StockReleased("MUG-350", str(uuid7()), 0), correlation_id=request)
    events = document(till("history", story.streams["order"], "--related", "--json"))["events"]
    assert "StockReleased" not in [event["type"] for event in events]


def test_an_event_dated_before_its_cause_comes_after_it_in_the_story(till: RunTill, pen: Pen) -> None:
    story = placed(pen, "MUG-350")
    early = pen.at - timedelta(minutes=30)
    pen.execute("order", "UPDATE events SET time = $2 WHERE stream_id = $1", story.streams["order"], early)
    events = document(till("history", story.streams["order"], "--related", "--json"))["events"]
    assert [event["type"] for event in events] == ["CartOpened", "ItemAdded", "CartCheckedOut", "OrderPlaced"]


def test_state_shows_the_stream_now_at_a_version_and_at_a_moment(till: RunTill, undone: Story) -> None:
    stream = undone.streams["order"]
    now = document(till("state", stream, "--json"))
    assert (now["version"], now["latest_version"], now["state"]["status"]) == (4, 4, "cancelled")
    then = document(till("state", stream, "--version", "2", "--json"))
    assert (then["version"], then["state"]["status"], then["state"]["reserved"]) == (2, "placed", ["MUG-350"])
    at = undone.events["PaymentRequested"].time.isoformat().replace("+00:00", "Z")
    assert document(till("state", stream, "--at", at, "--json"))["state"]["status"] == "reserved"
    ran = till("state", stream, "--at", at)
    assert "version 3 of 4" in ran.out
    assert re.search(r"^  total +23.80 EUR$", ran.out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments", [("state",), ("history",), ("history", "--related"), ("why",), ("diff", "--from", "0")]
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_personal_data_stays_sealed(
    till: RunTill, undone: Story, arguments: tuple[str, ...], form: tuple[str, ...]
) -> None:
    name, *options = arguments
    ran = till(name, undone.streams["order"], *options, *form)
    assert ran.code == 0, ran.err
    assert SECRET not in ran.out
    if name != "why":
        assert "(sealed)" in ran.out


def test_diff_names_the_event_behind_each_field(till: RunTill, undone: Story) -> None:
    stream = undone.streams["order"]
    found = document(till("diff", stream, "--from", "1", "--to", "4", "--json"))
    assert (found["from"]["version"], found["to"]["version"]) == (1, 4)
    by = {change["field"]: (change["event"]["type"], change["events"]) for change in found["changes"]}
    assert by == {
        "status": ("OrderCancelled", 2),
        "payment_id": ("PaymentRequested", 1),
        "reason": ("OrderCancelled", 1),
    }
    at = undone.events["PaymentRequested"].time.isoformat()
    since = document(till("diff", stream, "--from", at, "--json"))
    assert fields(since["changes"]) == {"status": ("reserved", "cancelled"), "reason": (None, "timeout")}
    assert "Nothing changed." in till("diff", stream, "--from", "4").out


def test_diff_of_a_cart_follows_its_lines(till: RunTill, undone: Story) -> None:
    found = document(till("diff", undone.streams["cart"], "--from", "1", "--to", "2", "--json"))
    line = {change["field"]: change for change in found["changes"]}["lines.MUG-350"]
    assert (line["before"], line["after"]["quantity"], line["event"]["type"]) == (None, 2, "ItemAdded")


def test_why_goes_back_to_the_first_request_across_services(till: RunTill, undone: Story) -> None:
    found = document(till("why", undone.streams["payment"], "--json"))
    assert [event["type"] for event in found["chain"]] == [
        "VoidRequested",
        "AuthorizationRequested",
        "PaymentRequested",
        "StockReserved",
        "OrderPlaced",
        "CartCheckedOut",
    ]
    [request] = found["requests"]
    assert request["id"] == undone.events["CartCheckedOut"].causation_id
    assert request["actor"] == ANN
    ran = till("why", undone.streams["payment"])
    assert f"request {request['id']} of {ANN}" in ran.out
    assert ran.out.index("CartCheckedOut") < ran.out.index("OrderCancelled") < ran.out.index("StockReleased")


def test_why_ends_with_what_the_order_still_waits_for(till: RunTill, undone: Story) -> None:
    [wait] = document(till("why", undone.streams["order"], "--json"))["waits"]
    assert wait["what"] == "the answer to void 23.80 EUR"
    assert wait["of"] == "the payment provider"
    assert datetime.fromisoformat(wait["due"]) == DUE
    ran = till("why", undone.streams["order"])
    assert "the answer to void 23.80 EUR, from the payment provider" in ran.out
    assert re.search(r"UTC, in \d\d min: it is asked again, with the same key", ran.out)


def test_why_names_the_service_that_has_not_reacted_yet(till: RunTill, pen: Pen) -> None:
    story = placed(pen, "MUG-350")
    pen.execute("order", "INSERT INTO deadlines VALUES ($1, $2)", story.streams["order"], DUE)
    waits = document(till("why", story.streams["cart"], "--json"))["waits"]
    assert [(wait["of"], wait["stream"]) for wait in waits] == [
        ("service catalog", "stock:MUG-350"),
        ("", story.streams["order"]),
    ]
    assert waits[0]["what"] == f"stock to react to OrderPlaced ({story.streams['order']}@1)"
    assert waits[0]["then"].startswith("leads to StockReserved")


def test_why_finds_a_cause_by_its_id_alone(till: RunTill, undone: Story) -> None:
    """A product has events of many orders, so causes are looked up one by one."""
    version = str(undone.events["StockReserved"].version)
    found = document(till("why", undone.streams["stock"], "--version", version, "--json"))
    assert [event["type"] for event in found["chain"]] == ["StockReserved", "OrderPlaced", "CartCheckedOut"]


def test_why_of_a_product_that_an_operator_listed_is_the_request(till: RunTill, pen: Pen) -> None:
    listed(pen, "POT-1")
    found = document(till("why", "stock:POT-1", "--json"))
    assert [event["type"] for event in found["chain"]] == ["ProductListed"]
    assert (found["requests"][0]["actor"], found["waits"]) == ("operator-1", [])


def test_why_says_that_a_cause_is_in_no_store(till: RunTill, pen: Pen) -> None:
    lost = placed(pen, "MUG-350").events["OrderPlaced"]._replace(event_id=str(uuid7()))
    pen.write("stock:POT-3", ProductListed("POT-3", "Pot", TOTAL, 1), because=lost)
    assert f"an event that is missing ({lost.event_id}), acted on by service:catalog" in till("why", "stock:POT-3").out


def test_an_open_cart_waits_for_its_shopper_and_has_only_its_own_events(till: RunTill, pen: Pen) -> None:
    stream = f"cart:{uuid7()}"
    pen.write(stream, CartOpened(ANN, 1))
    pen.execute("cart", "INSERT INTO deadlines VALUES ($1, $2)", stream, DUE)
    [wait] = document(till("why", stream, "--json"))["waits"]
    assert (wait["of"], wait["then"]) == ("the customer", "left alone until then, it is abandoned")
    events = document(till("history", stream, "--related", "--json"))["events"]
    assert [event["type"] for event in events] == ["CartOpened"]


def test_a_held_payment_waits_for_support_and_its_order_for_the_deadline(till: RunTill, pen: Pen) -> None:
    story = placed(pen, "MUG-350")
    order_id, payment_id = story.order_id, story.payment_id
    story.record("stock", StockReserved(story.sku, order_id, 2), because="OrderPlaced")
    requested = PaymentRequested(order_id, payment_id, ANN, TOTAL, "tok_ok")
    story.record("order", LineReserved(order_id, story.sku), requested, because="StockReserved")
    held = PaymentHeldForReview(payment_id, order_id, ANN, TOTAL, "tok_ok", ("much for a newcomer",))
    story.record("payment", held, because="PaymentRequested")
    story.record("order", OrderHeld(order_id, payment_id, 1), because="PaymentHeldForReview")
    pen.execute("order", "INSERT INTO deadlines VALUES ($1, $2)", story.streams["order"], DUE)
    waits = document(till("why", story.streams["order"], "--json"))["waits"]
    assert [(wait["what"], wait["of"]) for wait in waits] == [
        ("its deadline", ""),
        ("a review of the payment", "support"),
    ]


def test_a_schema_that_is_missing_in_the_service_is_read_from_the_registry(
    till: RunTill, pen: Pen, undone: Story
) -> None:
    stream = undone.streams["payment"]
    known = pen.execute("payment", "DELETE FROM schemas RETURNING id, subject, schema_text")
    try:
        assert document(till("state", stream, "--json"))["state"]["status"] == "voiding"
        away = till("state", stream, TILL_REGISTRY_URL=f"http://127.0.0.1:{free_ports(1)[0]}")
        assert away.code == 2
        assert away.err.startswith("error: The schema registry at")
    finally:
        for row in known:
            pen.execute("payment", "INSERT INTO schemas VALUES ($1, $2, $3)", *row)


def test_an_event_that_cannot_be_decoded_gives_exit_code_1(till: RunTill, pen: Pen) -> None:
    listed(pen, "POT-2")
    pen.execute("catalog", "UPDATE events SET value = 'x' WHERE stream_id = 'stock:POT-2'")
    ran = till("state", "stock:POT-2")
    assert ran.code == 1
    assert ran.err.startswith("An event cannot be read: not in the wire format")


NOBODY = "order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11"


@pytest.mark.parametrize("name", ["history", "state", "diff", "why"])
def test_an_unknown_stream_gives_one_line_and_exit_code_2(till: RunTill, name: str) -> None:
    ran = till(name, NOBODY, *(("--from", "0") if name == "diff" else ()))
    assert (ran.code, ran.out) == (2, "")
    hint = "Check that this is the complete id of the order."
    assert ran.err == f"error: There is no stream {NOBODY}: it has no events. {hint}\n"


@pytest.mark.parametrize("stream", ["order", "order:", "order:1", "basket:1", "stock:", "cart:0197f3a2"])
def test_a_text_that_names_no_stream_gives_exit_code_2(till: RunTill, stream: str) -> None:
    ran = till("state", stream)
    assert (ran.code, ran.out) == (2, "")
    assert "Invalid value for 'STREAM'" in ran.err


def test_a_time_before_the_first_event_or_a_version_after_the_last_gives_exit_code_2(
    till: RunTill, undone: Story
) -> None:
    stream = undone.streams["order"]
    before = till("state", stream, "--at", "2020-01-01T00:00:00Z")
    assert before.code == 2
    assert before.err.startswith(f"error: {stream} did not exist then. Its first event was at 20")
    past = till("state", stream, "--version", "9")
    assert (past.code, past.err) == (
        2,
        f"error: {stream} has no version 9. Its latest is 4; see: {program()} history {stream}\n",
    )
    assert till("diff", stream, "--from", "2020-01-01T00:00:00Z").code == 2
    assert till("diff", stream, "--from", "1", "--to", "9").code == 2
    assert till("why", stream, "--version", "9").code == 2
    assert till("state", stream, "--at", "-5m", "--version", "1").code == 2
    turned = till("diff", stream, "--from", "3", "--to", "1")
    assert turned.code == 2
    assert "--from (version 3) is later than --to (version 1)." in turned.err


@pytest.mark.parametrize("arguments", [("history",), ("state",), ("diff", "--from", "0"), ("why",)])
def test_a_stack_that_is_not_running_gives_one_line(till: RunTill, arguments: tuple[str, ...]) -> None:
    name, *options = arguments
    nowhere = f"postgresql://till:@127.0.0.1:{free_ports(1)[0]}/till"
    ran = till(name, NOBODY, *options, TILL_DATABASE_URL=nowhere)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: PostgreSQL does not answer")
    assert ran.err.endswith(f"Start it with: {program()} up. Or set TILL_DATABASE_URL.\n")
    assert ran.err.count("\n") == 1


def test_a_database_without_a_shop_gives_one_line(till: RunTill, stack: Settings) -> None:
    empty = stack.database_url.get_secret_value().rpartition("/")[0] + "/postgres"
    ran = till("state", NOBODY, TILL_DATABASE_URL=empty)
    assert (ran.code, ran.err) == (
        2,
        f"error: No shop of this release has run on this database. Start one with: {program()} up\n",
    )


def test_looking_back_changes_nothing(till: RunTill, pen: Pen, undone: Story) -> None:
    def everything() -> list[Any]:
        tables = ("events", "outbox", "snapshots", "milestones", "deadlines", "schemas", "offsets")
        return [pen.execute(s, f"SELECT * FROM {t} ORDER BY 1, 2") for s in ("cart", "order") for t in tables]

    before = everything()
    for arguments in (
        ("history", "--related"),
        ("state",),
        ("diff", "--from", "0"),
        ("why",),
        ("state", "--version", "99"),
    ):
        till(arguments[0], undone.streams["order"], *arguments[1:])
    assert everything() == before
