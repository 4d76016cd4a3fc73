"""The book: one effect and one answer for each key, however many ask at once, and all of it still there later."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from services.psp.book import Answer, Book
from services.psp.ledger import Ledger
from services.psp.rules import Request
from shared.errors import Refused

AUTHORIZE = Request("authorize", "p1", 6370, "EUR", "tok_ok")
CAPTURE = Request("capture", "p1", 6370, "EUR")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "psp" / "ledger.sqlite") as ledger:
        yield ledger


async def all_kinds(ledger: Ledger) -> list[str]:
    return [movement.deed.kind for movement in await ledger.read(lambda book: book.since(0))]


def test_the_same_key_gets_the_same_answer_and_moves_money_once(ledger: Ledger) -> None:
    async def ask() -> tuple[Answer, Answer]:
        return await ledger.answer("k1", AUTHORIZE), await ledger.answer("k1", AUTHORIZE)

    first, second = asyncio.run(ask())
    assert (first.is_new, second.is_new) == (True, False)
    assert first.movement == second.movement
    assert asyncio.run(all_kinds(ledger)) == ["authorized"]


def test_the_same_key_with_another_request_is_refused(ledger: Ledger) -> None:
    asyncio.run(ledger.answer("k1", AUTHORIZE))
    with pytest.raises(Refused) as refusal:
        asyncio.run(ledger.answer("k1", AUTHORIZE._replace(amount=1)))
    assert refusal.value.code == "idempotency-key-reused"


def test_a_refusal_leaves_no_trace_so_that_the_key_can_be_used_again(ledger: Ledger) -> None:
    with pytest.raises(Refused):
        asyncio.run(ledger.answer("capture", CAPTURE))
    asyncio.run(ledger.answer("authorize", AUTHORIZE))
    assert asyncio.run(ledger.answer("capture", CAPTURE)).is_new


def test_of_many_at_once_each_gets_its_own_answer(ledger: Ledger) -> None:
    async def ask() -> list[Answer | BaseException]:
        await ledger.answer("a", AUTHORIZE)
        captures = (ledger.answer(f"c{number % 10}", CAPTURE) for number in range(100))
        others = (ledger.answer(f"k{n}", AUTHORIZE._replace(payment_id=f"other-{n}")) for n in range(100))
        return await asyncio.gather(*captures, *others, return_exceptions=True)

    answers = asyncio.run(ask())
    captured = [answer for answer in answers[:100] if isinstance(answer, Answer)]
    assert len(captured) == 10
    assert sum(answer.is_new for answer in captured) == 1
    assert all(isinstance(answer, Refused) for answer in answers[:100] if answer not in captured)
    assert [a.movement.payment_id for a in answers[100:] if isinstance(a, Answer)] == [f"other-{n}" for n in range(100)]
    assert sorted(asyncio.run(all_kinds(ledger))) == ["authorized"] * 101 + ["captured"]


def test_who_stops_waiting_does_not_take_the_others_down(ledger: Ledger) -> None:
    async def ask() -> Answer:
        waiting = [
            asyncio.create_task(ledger.answer(f"k{n}", AUTHORIZE._replace(payment_id=f"p{n}"))) for n in range(20)
        ]
        await asyncio.sleep(0)
        waiting[0].cancel()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        return await waiting[-1]

    assert asyncio.run(ask()).movement.payment_id == "p19"


def test_the_book_itself_does_not_take_a_second_capture(tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger.sqlite")
    with book.transaction():
        book.answer("a", AUTHORIZE)
        captured = book.answer("c", CAPTURE).movement
    with pytest.raises(sqlite3.IntegrityError), book.transaction():
        book._append("p1", captured.deed)
    assert [movement.deed.kind for movement in book.of_payment("p1")] == ["authorized", "captured"]
    book.close()


def test_what_went_wrong_within_a_transaction_did_not_happen(tmp_path: Path) -> None:
    book = Book(tmp_path / "ledger.sqlite")
    with suppress(RuntimeError), book.transaction():
        book.answer("a", AUTHORIZE)
        raise RuntimeError
    assert book.since(0) == []
    with book.transaction():
        assert book.answer("a", AUTHORIZE).is_new
    book.close()


def test_sums_are_by_currency(ledger: Ledger) -> None:
    async def move() -> dict[str, dict[str, int]]:
        await ledger.answer("1", AUTHORIZE)
        await ledger.answer("2", CAPTURE)
        await ledger.answer("3", Request("refund", "p1", 1000, "EUR"))
        await ledger.answer("4", Request("authorize", "p2", 300, "JPY", "tok_ok"))
        await ledger.answer("5", Request("void", "p2"))
        await ledger.answer("6", Request("authorize", "p3", 50, "EUR", "tok_declined"))
        return await ledger.read(Book.totals)

    assert asyncio.run(move()) == {
        "EUR": {"authorized": 6370, "declined": 50, "captured": 6370, "voided": 0, "refunded": 1000},
        "JPY": {"authorized": 300, "declined": 0, "captured": 0, "voided": 300, "refunded": 0},
    }
