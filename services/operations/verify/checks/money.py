"""Invariants I2 and I4: money is taken at most once, and kept exactly for confirmed orders, to the cent.

The provider's own ledger is compared with payments and orders. It comes in one piece, so it is in memory; payments
and orders are read in chunks.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, NamedTuple

import asyncpg
import httpx
import orjson

from services.common.money import Money
from services.operations.reading.stores import Store
from services.operations.verify.findings import CheckContext, Findings, Violation
from services.operations.verify.settlement import describe_mismatch, format_sums, sum_balances
from services.operations.verify.suspects import settle_suspects
from shared.errors import OperatorError

NAME, ABOUT = "money", "the provider's ledger = payments = confirmed orders, to the cent; nothing taken twice"
ROWS_PER_QUERY = 5_000
KINDS = {
    "PaymentAuthorized": "authorized",
    "PaymentCaptured": "captured",
    "PaymentVoided": "voided",
    "PaymentRefunded": "refunded",
}
"""The kind of movement in the ledger that an event of a payment records."""
RECORDED = """
SELECT position, stream_id, version, type, value FROM events
WHERE position > $1 AND type = ANY($2::text[]) AND time >= coalesce($4, time) ORDER BY position LIMIT $3
"""
ORDERS = """
SELECT order_id, status, total, currency, payment_id FROM orders WHERE order_id > $1 ORDER BY order_id LIMIT $2
"""


class LedgerEntry(NamedTuple):
    """A movement in the ledger, or a payment's record of one."""

    payment_id: str
    kind: str
    money: Money
    reference: str


class MoneyCheck:
    def __init__(self, context: CheckContext, http: httpx.AsyncClient, orders: Store, payments: Store) -> None:
        self.context = context
        self.http = http
        self.orders = orders
        self.payments = payments
        self.findings = Findings(NAME, ABOUT, unit="records")

    async def find_suspects(self) -> set[str]:
        """Returns payments that do not agree with the ledger or with their order, or not yet."""
        ledger = await self._ledger()
        self._count(len(ledger))
        suspects = {movement.payment_id for movement in _repeated(ledger)}
        unrecorded = {movement.reference: movement for movement in ledger if movement.kind in KINDS.values()}
        async for movement, _, _ in self._recorded():
            if unrecorded.pop(movement.reference, None) != movement:
                suspects.add(movement.payment_id)
        if self.context.since is None:
            suspects |= {movement.payment_id for movement in unrecorded.values()}
        left = sum_balances(ledger)
        async for rows in self._orders():
            for _, status, total, currency, payment_id in rows:
                if describe_mismatch(status, Money(total, currency), left.pop(payment_id or "", Counter())):
                    suspects.add(payment_id or "")
        return suspects | {payment_id for payment_id, has in left.items() if has != Counter()}

    def _count(self, more: int) -> None:
        self.findings.looked_at += more
        self.context.report(more)

    async def _ledger(self) -> list[LedgerEntry]:
        return [_entry(movement) for movement in (await self._get("/ledger"))["movements"]]

    async def _get(self, path: str) -> Any:
        try:
            answer = await self.http.get(path)
        except httpx.TransportError as error:
            raise OperatorError(
                f"The payment provider at {self.http.base_url} does not answer: {error!r}", "Start it with: till up"
            ) from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return {"movements": []}
        answer.raise_for_status()
        return orjson.loads(answer.content)

    async def _recorded(self) -> AsyncIterator[tuple[LedgerEntry, str, int]]:
        after = 0
        while rows := await self.payments.pool.fetch(RECORDED, after, list(KINDS), ROWS_PER_QUERY, self.context.since):
            for row in rows:
                yield await self._recorded_entry(row), row["stream_id"], row["version"]
            after = rows[-1]["position"]
            self._count(len(rows))

    async def _recorded_entry(self, row: asyncpg.Record) -> LedgerEntry:
        event = await self.payments.decoder.decode(row["value"])
        return LedgerEntry(event.payment_id, KINDS[row["type"]], event.amount, event.reference)

    async def _orders(self) -> AsyncIterator[Sequence[asyncpg.Record]]:
        after = ""
        while rows := await self.orders.pool.fetch(ORDERS, after, ROWS_PER_QUERY):
            yield rows
            after = rows[-1]["order_id"]
            self._count(len(rows))

    async def judge(self, suspects: Collection[str], is_last: bool) -> Collection[str]:
        undecided = []
        for payment_id in suspects:
            if problems := [it async for it in self._problems(payment_id)]:
                undecided.append(payment_id)
                for violation in problems if is_last else ():
                    self.findings.add(violation)
        return [] if is_last else undecided

    async def _problems(self, payment_id: str) -> AsyncIterator[Violation]:
        """Yields what is wrong with one payment now. Its records are read first: the provider acted before them."""
        stream = f"payment:{payment_id}"
        rows = await self.payments.pool.fetch(
            "SELECT stream_id, version, type, value FROM events WHERE stream_id = $1 AND type = ANY($2::text[])",
            stream,
            list(KINDS),
        )
        recorded = [(await self._recorded_entry(row), row["version"]) for row in rows]
        movements = [] if not payment_id else (await self._get(f"/payments/{payment_id}"))["movements"]
        done = [movement for it in movements if (movement := _entry(it)).kind in KINDS.values()]
        for movement, version in recorded:
            if movement not in done:
                moved = f"{movement.kind} {movement.money}"
                what = f"{moved} is recorded as {movement.reference}; the provider's ledger lacks it."
                yield Violation(what, stream, f"version {version}", f"till history {stream} --related")
        for movement in done:
            if movement not in [it for it, _ in recorded]:
                what = f"The provider's ledger has {movement.kind} {movement.money}; the payment has no record of it."
                yield Violation(what, stream, movement.reference, f"till history {stream} --related")
        for movement in _repeated(done):
            what = f"It was {movement.kind} more than once."
            yield Violation(what, stream, movement.reference, f"till history {stream} --related")
        async for violation in self._against_order(payment_id, sum_balances(done).get(payment_id, Counter())):
            yield violation

    async def _against_order(self, payment_id: str, has: Counter[str]) -> AsyncIterator[Violation]:
        rows = await self.orders.pool.fetch(
            "SELECT order_id, status, total, currency FROM orders WHERE coalesce(payment_id, '') = $1", payment_id
        )
        for order_id, status, total, currency in rows:
            if problem := describe_mismatch(status, Money(total, currency), has):
                yield Violation(f"It {problem}.", f"order:{order_id}", payment_id, f"till why order:{order_id}")
        if not rows and has != Counter():
            stream = f"payment:{payment_id}"
            what = f"The provider kept {format_sums(has)}, and there is no order."
            yield Violation(what, stream, payment_id, f"till why {stream}")


def _entry(movement: Any) -> LedgerEntry:
    return LedgerEntry(
        movement["payment_id"],
        movement["kind"],
        Money(movement["amount"], movement["currency"]),
        movement["reference"],
    )


def _repeated(movements: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Returns second authorisations, captures and voids of a payment: each may happen once at most."""
    met: set[tuple[str, str]] = set()
    found = []
    for movement in movements:
        done = movement.payment_id, movement.kind
        if done in met and movement.kind in ("authorized", "captured", "voided"):
            found.append(movement)
        met.add(done)
    return found


async def check(context: CheckContext) -> list[Findings]:
    orders, payments = context.store_of("order"), context.store_of("payment")
    if orders is None or payments is None:
        return [Findings(NAME, ABOUT, notes=["There are no orders here, or no payments."])]
    async with httpx.AsyncClient(base_url=context.settings.psp_url, timeout=60) as http:
        money = MoneyCheck(context, http, orders, payments)
        await settle_suspects(context, await money.find_suspects(), money.judge, money.findings)
    return [money.findings]
