"""Yesterday's commands are found again and decided by today's rules; a rule that was changed shows where."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from infra.events import declared_services
from services.cart.commands import AddItem
from services.order.commands import RecordPaymentAuthorized
from services.replay.decisions import Compared, compare_decisions
from shared.errors import Refused
from shared.service import Service
from shared.settings import Settings
from tests.integration.replay.conftest import Asked

Sql = Callable[..., list[Any]]
Decide = Callable[[Any, Any], list[Any]]


def compared(shop: Settings, name: str, change: Callable[[Decide], Decide]) -> Compared:
    """With other rules in the place of one service's."""
    services: Sequence[Service] = [
        replace(it, decider=replace(it.decider, decide=change(it.decider.decide))) if it.name == name else it
        for it in declared_services(shop)
    ]
    [found] = asyncio.run(compare_decisions(shop, services, [name]))
    return found


def test_todays_rules_decide_as_they_did(asked: Asked, sql: Sql) -> None:
    before = [sql(service, "SELECT count(*) FROM events") for service in ("cart", "catalog", "order", "payment")]
    ran = asked("whatif", "decisions", "--json")
    assert ran.code == 0, ran.err
    for it in ran.document:
        assert it["decisions"] == it["same"] > 20, it
        assert (it["different"], it["underivable"]) == (0, {})
    assert before == [
        sql(service, "SELECT count(*) FROM events") for service in ("cart", "catalog", "order", "payment")
    ]


def test_a_stricter_rule_shows_whom_it_would_have_refused(shop: Settings, sql: Sql) -> None:
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


def test_a_rule_that_decides_otherwise_is_told_by_what_it_would_have_recorded(shop: Settings) -> None:
    """A reaction: its command is found from the event that was heard."""

    def never_confirm(decide: Decide) -> Decide:
        return lambda command, state: [] if isinstance(command, RecordPaymentAuthorized) else decide(command, state)

    found = compared(shop, "order", never_confirm)
    assert {(it.command, it.recorded, it.decided) for it in found.differences} == {
        ("RecordPaymentAuthorized", "OrderConfirmed", "nothing")
    }


def test_a_rule_that_changes_a_field_is_told_by_the_field(shop: Settings) -> None:
    def cheaper(decide: Decide) -> Decide:
        def decided(command: Any, state: Any) -> list[Any]:
            return [replace(it, quantity=7) if hasattr(it, "unit_price") else it for it in decide(command, state)]

        return decided

    found = compared(shop, "cart", cheaper)
    assert found.differences
    assert all("ItemAdded.quantity 7, not" in it.decided or "QuantitySet" in it.decided for it in found.differences)


def test_only_the_decisions_of_a_window_are_made_again(asked: Asked) -> None:
    ran = asked("whatif", "decisions", "cart", "--to", "2020-01-01T00:00:00Z", "--json")
    assert ran.code == 0, ran.err
    assert [it["decisions"] for it in ran.document] == [0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["psp"], "There is no service psp."), (["--from", "-1m", "--to", "-2m"], "--from is after --to")],
)
def test_what_cannot_be_asked_is_said(asked: Asked, arguments: list[str], said: str) -> None:
    ran = asked("whatif", "decisions", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
