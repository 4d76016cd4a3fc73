"""The provider's ledger: one effect and one answer per key, however many ask at once, and nothing is lost."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from services.psp.ledger import Answer, Ledger
from services.psp.rules import Request
from shared.errors import Refused

AUTHORIZE = Request("authorize", "p1", 6370, "EUR", "tok_ok")
CAPTURE = Request("capture", "p1", 6370, "EUR")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "psp" / "ledger.sqlite"


@pytest.fixture
def ledger(file: Path) -> Iterator[Ledger]:
    with Ledger(file) as ledger:
        yield ledger


def all_kinds(ledger: Ledger) -> list[str]:
    return [movement.entry.kind for movement in ledger.since(0)[0]]


def test_the_same_key_gets_the_same_answer_and_moves_money_once(ledger: Ledger) -> None:
    first, second = ledger.answer("k1", AUTHORIZE), ledger.answer("k1", AUTHORIZE)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.movement == second.movement
    assert all_kinds(ledger) == ["authorized"]


def test_the_same_key_with_another_request_is_refused(ledger: Ledger) -> None:
    ledger.answer("k1", AUTHORIZE)
    with pytest.raises(Refused) as refusal:
        ledger.answer("k1", AUTHORIZE._replace(amount=1))
    assert refusal.value.code == "idempotency-key-reused"


def test_a_refusal_leaves_no_trace_so_that_the_key_can_be_used_again(ledger: Ledger) -> None:
    with pytest.raises(Refused):
        ledger.answer("capture", CAPTURE)
    ledger.answer("authorize", AUTHORIZE)
    assert ledger.answer("capture", CAPTURE).is_new


def test_a_key_answered_before_a_restart_gets_the_same_answer_after_it(file: Path) -> None:
    with Ledger(file) as ledger:
        before = ledger.answer("k1", AUTHORIZE)
    with Ledger(file) as ledger:
        assert ledger.answer("k1", AUTHORIZE) == Answer(before.movement, is_new=False)


def test_each_of_many_concurrent_callers_gets_its_own_answer(ledger: Ledger) -> None:
    def ask(key: str, request: Request) -> Answer | Refused:
        try:
            return ledger.answer(key, request)
        except Refused as refused:
            return refused

    ledger.answer("a", AUTHORIZE)
    with ThreadPoolExecutor(16) as callers:
        captures = [callers.submit(ask, f"c{n % 10}", CAPTURE) for n in range(100)]
        others = [callers.submit(ask, f"k{n}", AUTHORIZE._replace(payment_id=f"other-{n}")) for n in range(100)]
    answers = [it.result() for it in captures]
    captured = [answer for answer in answers if isinstance(answer, Answer)]
    assert len(captured) == 10
    assert sum(answer.is_new for answer in captured) == 1
    found = [it.result() for it in others]
    assert [it.movement.payment_id for it in found if isinstance(it, Answer)] == [f"other-{n}" for n in range(100)]
    assert sorted(all_kinds(ledger)) == ["authorized"] * 101 + ["captured"]


def test_the_table_itself_does_not_take_a_second_capture(ledger: Ledger) -> None:
    ledger.answer("a", AUTHORIZE)
    captured = ledger.answer("c", CAPTURE).movement
    with pytest.raises(sqlite3.IntegrityError), ledger._transaction():
        ledger._append("p1", captured.entry)
    assert [movement.entry.kind for movement in ledger.of_payment("p1")] == ["authorized", "captured"]


def test_a_failure_within_a_transaction_undoes_all_of_it(ledger: Ledger) -> None:
    with suppress(RuntimeError), ledger._transaction():
        ledger._perform("a", AUTHORIZE)
        raise RuntimeError
    assert all_kinds(ledger) == []
    assert ledger.answer("a", AUTHORIZE).is_new


def test_sums_are_by_currency(ledger: Ledger) -> None:
    ledger.answer("1", AUTHORIZE)
    ledger.answer("2", CAPTURE)
    ledger.answer("3", Request("refund", "p1", 1000, "EUR"))
    ledger.answer("4", Request("authorize", "p2", 300, "JPY", "tok_ok"))
    ledger.answer("5", Request("void", "p2"))
    ledger.answer("6", Request("authorize", "p3", 50, "EUR", "tok_declined"))
    assert ledger.since(0)[1] == {
        "EUR": {"authorized": 6370, "declined": 50, "captured": 6370, "voided": 0, "refunded": 1000},
        "JPY": {"authorized": 300, "declined": 0, "captured": 0, "voided": 300, "refunded": 0},
    }
