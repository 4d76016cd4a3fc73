"""I2, I4: the provider's own ledger against orders and payments: taken once, kept for confirmed orders, to the cent.

The provider gives its ledger out in one piece, so that one is in memory; orders and payments stream past it.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, NamedTuple

import asyncpg
import httpx
import orjson

from services.replay.checks.findings import Findings, Violation, World
from services.replay.checks.suspects import settle
from services.replay.money import at_odds, kept, said
from services.replay.targets import Store
from shared.errors import OperatorError
from shared.money import Money

NAME, ABOUT = "money", "the provider's ledger = payments = confirmed orders, to the cent; nothing taken twice"
CHUNK = 5_000
# What a payment has recorded of the provider's deeds, by the type of the event.
DEEDS = {
    "PaymentAuthorized": "authorized",
    "PaymentCaptured": "captured",
    "PaymentVoided": "voided",
    "PaymentRefunded": "refunded",
}
RECORDED = """
SELECT position, stream_id, version, type, value FROM events
WHERE position > $1 AND type = ANY($2::text[]) AND time >= coalesce($4, time) ORDER BY position LIMIT $3
"""
ORDERS = """
SELECT order_id, status, total, currency, payment_id FROM orders WHERE order_id > $1 ORDER BY order_id LIMIT $2
"""


class Moved(NamedTuple):
    """A movement in the ledger, or what a payment has recorded of one."""

    payment_id: str
    kind: str
    money: Money
    reference: str


class Till:
    def __init__(self, world: World, http: httpx.AsyncClient, orders: Store, payments: Store) -> None:
        self.world = world
        self.http = http
        self.orders = orders
        self.payments = payments
        self.findings = Findings(NAME, ABOUT, unit="records")

    async def look(self) -> set[str]:
        """Payments that are not yet as they should be."""
        ledger = await self._ledger()
        self._note(len(ledger))
        suspects = {movement.payment_id for movement in _twice(ledger)}
        unrecorded = {movement.reference: movement for movement in ledger if movement.kind in DEEDS.values()}
        async for movement, _, _ in self._recorded():
            if unrecorded.pop(movement.reference, None) != movement:
                suspects.add(movement.payment_id)
        if self.world.since is None:
            suspects |= {movement.payment_id for movement in unrecorded.values()}
        left = kept(ledger)
        async for rows in self._orders():
            for _, status, total, currency, payment_id in rows:
                if at_odds(status, Money(total, currency), left.pop(payment_id or "", Counter())):
                    suspects.add(payment_id or "")
        return suspects | {payment_id for payment_id, has in left.items() if has != Counter()}

    def _note(self, more: int) -> None:
        self.findings.looked_at += more
        self.world.tell(more)

    async def _ledger(self) -> list[Moved]:
        return [_moved(movement) for movement in (await self._get("/ledger"))["movements"]]

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

    async def _recorded(self) -> AsyncIterator[tuple[Moved, str, int]]:
        after = 0
        while rows := await self.payments.pool.fetch(RECORDED, after, list(DEEDS), CHUNK, self.world.since):
            for row in rows:
                yield await self._deed(row), row["stream_id"], row["version"]
            after = rows[-1]["position"]
            self._note(len(rows))

    async def _deed(self, row: asyncpg.Record) -> Moved:
        event = await self.payments.memory.decode(row["value"])
        return Moved(event.payment_id, DEEDS[row["type"]], event.amount, event.reference)

    async def _orders(self) -> AsyncIterator[Sequence[asyncpg.Record]]:
        after = ""
        while rows := await self.orders.pool.fetch(ORDERS, after, CHUNK):
            yield rows
            after = rows[-1]["order_id"]
            self._note(len(rows))

    async def judge(self, suspects: Collection[str], is_last: bool) -> Collection[str]:
        undecided = []
        for payment_id in suspects:
            if problems := [it async for it in self._problems(payment_id)]:
                undecided.append(payment_id)
                for violation in problems if is_last else ():
                    self.findings.add(violation)
        return [] if is_last else undecided

    async def _problems(self, payment_id: str) -> AsyncIterator[Violation]:
        """Of one payment, as it is now. Records first: what they have, the provider has done before."""
        stream = f"payment:{payment_id}"
        rows = await self.payments.pool.fetch(
            "SELECT stream_id, version, type, value FROM events WHERE stream_id = $1 AND type = ANY($2::text[])",
            stream,
            list(DEEDS),
        )
        recorded = [(await self._deed(row), row["version"]) for row in rows]
        movements = [] if not payment_id else (await self._get(f"/payments/{payment_id}"))["movements"]
        done = [movement for it in movements if (movement := _moved(it)).kind in DEEDS.values()]
        for movement, version in recorded:
            if movement not in done:
                what = (
                    f"{movement.kind} {movement.money} is recorded as {movement.reference}; the provider has no such."
                )
                yield Violation(what, stream, f"version {version}", f"till history {stream} --related")
        for movement in done:
            if movement not in [it for it, _ in recorded]:
                what = f"The provider has {movement.kind} {movement.money}; the payment has no record of it."
                yield Violation(what, stream, movement.reference, f"till history {stream} --related")
        for movement in _twice(done):
            what = f"It was {movement.kind} more than once."
            yield Violation(what, stream, movement.reference, f"till history {stream} --related")
        async for violation in self._against_order(payment_id, kept(done).get(payment_id, Counter())):
            yield violation

    async def _against_order(self, payment_id: str, has: Counter[str]) -> AsyncIterator[Violation]:
        rows = await self.orders.pool.fetch(
            "SELECT order_id, status, total, currency FROM orders WHERE coalesce(payment_id, '') = $1", payment_id
        )
        for order_id, status, total, currency in rows:
            if problem := at_odds(status, Money(total, currency), has):
                yield Violation(f"It {problem}.", f"order:{order_id}", payment_id, f"till why order:{order_id}")
        if not rows and has != Counter():
            stream = f"payment:{payment_id}"
            yield Violation(f"Kept {said(has)}, and is of no order.", stream, payment_id, f"till why {stream}")


def _moved(movement: Any) -> Moved:
    return Moved(
        movement["payment_id"],
        movement["kind"],
        Money(movement["amount"], movement["currency"]),
        movement["reference"],
    )


def _twice(movements: Sequence[Moved]) -> list[Moved]:
    """Authorised, captured or voided: once at most."""
    met: set[tuple[str, str]] = set()
    found = []
    for movement in movements:
        deed = movement.payment_id, movement.kind
        if deed in met and movement.kind in ("authorized", "captured", "voided"):
            found.append(movement)
        met.add(deed)
    return found


async def check(world: World) -> list[Findings]:
    orders, payments = world.service("order"), world.service("payment")
    if orders is None or payments is None:
        return [Findings(NAME, ABOUT, notes=["There are no orders here, or no payments."])]
    async with httpx.AsyncClient(base_url=world.settings.psp_url, timeout=60) as http:
        till = Till(world, http, world.stores[orders.name], world.stores[payments.name])
        await settle(world, await till.look(), till.judge, till.findings)
    return [till.findings]
