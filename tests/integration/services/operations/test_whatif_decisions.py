"""`till whatif decisions` decides old commands by today's rules, and shows where a changed rule decides otherwise."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from infra.settings import Settings
from services.cart.commands import AddItem
from services.operations.whatif.decisions import ComparedDecisions, compare_decisions
from services.order.commands import RecordPaymentAuthorized
from services.shop.services import shop_services
from shared.errors import Refused
from shared.service import Service
from tests.till import RunTill

Sql = Callable[..., list[Any]]
Decide = Callable[[Any, Any], list[Any]]


def compared(shop: Settings, name: str, change: Callable[[Decide], Decide]) -> ComparedDecisions:
    """Compares decisions with the rules of one service replaced."""
    services: Sequence[Service] = [
        replace(it, decider=replace(it.decider, decide=change(it.decider.decide))) if it.name == name else it
        for it in shop_services(shop)
    ]
    [found] = asyncio.run(compare_decisions(shop, services, [name]))
    return found


def test_unchanged_rules_decide_everything_as_recorded_and_write_nothing(run_till: RunTill, sql: Sql) -> None:
    before = [sql(service, "SELECT count(*) FROM events") for service in ("cart", "catalog", "order", "payment")]
    ran = run_till("whatif", "decisions", "--json")
    assert ran.code == 0, ran.err
    for it in ran.document:
        assert it["decisions"] == it["same"] > 20, it
        assert (it["different"], it["underivable"]) == (0, {})
    assert before == [
        sql(service, "SELECT count(*) FROM events") for service in ("cart", "catalog", "order", "payment")
    ]


def test_a_stricter_rule_shows_the_commands_it_would_have_refused(shop: Settings, sql: Sql) -> None:
    def only_one_at_a_time(decide: Decide) -> Decide:
        def stricter(command: Any, state: Any) -> list[Any]:
            if isinstance(command, AddItem) and command.quantity > 1:
                raise Refused("one-at-a-time", "One at a time.")
            return decide(command, state)

        return stricter

    found = compared(shop, "cart", only_one_at_a_time)
    assert found.different == len(found.differences) > 0
    assert found.same + found.different == found.decisions
    difference = found.differences[0]
    assert (difference.command, difference.recorded) == ("AddItem", "ItemAdded")
    assert difference.decided == "refused: one-at-a-time"
    stream, version = difference.stream, difference.version
    [row] = sql("cart", "SELECT type FROM events WHERE (stream_id, version) = ($1, $2)", stream, version)
    assert row["type"] == "ItemAdded"


def test_a_changed_reaction_shows_the_events_it_would_have_recorded(shop: Settings) -> None:
    """The command of a reaction is found from the event that caused it."""

    def never_confirm(decide: Decide) -> Decide:
        return lambda command, state: [] if isinstance(command, RecordPaymentAuthorized) else decide(command, state)

    found = compared(shop, "order", never_confirm)
    assert {(it.command, it.recorded, it.decided) for it in found.differences} == {
        ("RecordPaymentAuthorized", "OrderConfirmed", "nothing")
    }


def test_a_rule_that_changes_a_field_shows_the_field(shop: Settings) -> None:
    def seven_of_each(decide: Decide) -> Decide:
        def decided(command: Any, state: Any) -> list[Any]:
            return [replace(it, quantity=7) if hasattr(it, "unit_price") else it for it in decide(command, state)]

        return decided

    found = compared(shop, "cart", seven_of_each)
    assert found.differences
    assert all(re.fullmatch(r"(ItemAdded|QuantitySet)\.quantity 7, not \d+", it.decided) for it in found.differences)


def test_only_the_decisions_of_a_window_are_made_again(run_till: RunTill) -> None:
    ran = run_till("whatif", "decisions", "cart", "--to", "2020-01-01T00:00:00Z", "--json")
    assert ran.code == 0, ran.err
    assert [it["decisions"] for it in ran.document] == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["psp"], "There is no service psp."), (["--from", "-1m", "--to", "-2m"], "--from is after --to")],
)
def test_an_unknown_service_or_an_empty_window_gives_exit_code_2(
    run_till: RunTill, arguments: list[str], message: str
) -> None:
    ran = run_till("whatif", "decisions", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
