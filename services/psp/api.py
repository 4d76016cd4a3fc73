"""The provider over HTTP. Every change carries an Idempotency-Key: the same key gets the same answer, once."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from services.psp.book import Movement
from services.psp.ledger import Ledger
from services.psp.rules import Kind
from services.psp.rules import Request as Asked
from services.psp.tokens import manner_of
from shared.cards import has_card_number
from shared.http import problems
from shared.http.app import BodyLimit
from shared.http.problems import Problem
from shared.settings import Settings

Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Amount = Annotated[int, Field(strict=True, ge=1, le=10**12, description="Minor units.")]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$")]

STATUSES = {"idempotency-key-reused": 422}
MOST_MOVEMENTS = 2**62
BODY_LIMIT = 4096


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    payment_id: UUID


class Amounted(Body):
    amount: Amount
    currency: Currency


class Authorization(Amounted):
    token: Annotated[str, Field(pattern="^[a-z0-9_]{1,100}$", examples=["tok_ok"])]


class Answered(BaseModel):
    payment_id: UUID
    outcome: Literal["approved", "declined"]
    reference: str
    reason: Annotated[str, Field(description="Of a decline.")]


class MovementView(BaseModel):
    id: int
    payment_id: UUID
    kind: Literal["authorized", "declined", "captured", "voided", "refunded"]
    amount: int
    currency: str
    token: str
    reference: str
    reason: str
    at: str


class PaymentView(BaseModel):
    payment_id: UUID
    movements: list[MovementView]


class LedgerView(BaseModel):
    movements: list[MovementView]
    totals: dict[str, dict[str, int]]


async def no_card_numbers(request: Request, key: Key) -> None:
    """Before anything is kept or logged. What is not JSON is refused by the body's own rules."""
    try:
        sent = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        sent = {}
    if has_card_number([sent, key]):
        raise Problem(422, "card-number", "This looks like a card number. Send the token it was exchanged for.")


def create_app(ledger: Ledger, settings: Settings, chance: Callable[[], float] = random.random) -> FastAPI:
    app = FastAPI(title="Till Roll: the payment provider, simulated", version="1")
    app.state.statuses = STATUSES
    problems.install(app)
    app.add_middleware(BodyLimit, limit=BODY_LIMIT)
    app.include_router(_changes(ledger, settings, chance))
    app.include_router(_looks(ledger))
    return app


def _changes(ledger: Ledger, settings: Settings, chance: Callable[[], float]) -> APIRouter:
    routes = APIRouter(dependencies=[Depends(no_card_numbers)])
    failed: Counter[str] = Counter()

    async def perform(key: str, request: Asked) -> Answered:
        await asyncio.sleep(settings.psp_latency_ms / 1000)
        manner = manner_of(request.token or await ledger.read(lambda it: it.token_of(request.payment_id)))
        if failed[key] < manner.failures:
            failed[key] += 1
            raise _unavailable()
        fails = chance() < settings.psp_failure_rate
        if fails and chance() < 0.5:
            raise _unavailable()
        answer = await ledger.answer(key, request)
        if manner.is_late and answer.is_new:
            await asyncio.sleep(settings.psp_late_seconds)
        if fails:
            raise _unavailable()  # though it is done: that is what makes a provider hard to deal with
        return _answered(answer.movement)

    @routes.post("/authorizations", summary="Put an amount aside")
    async def authorize(body: Authorization, key: Key) -> Answered:
        return await perform(key, _request("authorize", body))

    @routes.post("/captures", summary="Take what was put aside, once")
    async def capture(body: Amounted, key: Key) -> Answered:
        return await perform(key, _request("capture", body))

    @routes.post("/voids", summary="Let go of what was put aside and not taken")
    async def void(body: Body, key: Key) -> Answered:
        return await perform(key, _request("void", body))

    @routes.post("/refunds", summary="Give back what was taken, or a part of it")
    async def refund(body: Amounted, key: Key) -> Answered:
        return await perform(key, _request("refund", body))

    return routes


def _looks(ledger: Ledger) -> APIRouter:
    routes = APIRouter()

    @routes.get("/payments/{payment_id}", summary="What was done: to be asked when an answer did not come")
    async def payment(payment_id: UUID) -> PaymentView:
        found = await ledger.read(lambda it: it.of_payment(str(payment_id)))
        if not found:
            raise Problem(404, "payment-unknown", "Nothing was ever done for this payment.")
        return PaymentView(payment_id=payment_id, movements=[MovementView(**_shown(it)) for it in found])

    @routes.get("/ledger", summary="All movements of money, and their sums by currency", response_model=LedgerView)
    async def show(
        after: Annotated[int, Query(ge=0, le=MOST_MOVEMENTS, description="Only movements after this id.")] = 0,
    ) -> Response:
        movements, totals = await ledger.read(lambda it: (it.since(after), it.totals()))
        # Of every movement there ever was: a model of each would take ten times as long.
        shown = {"movements": list(map(_shown, movements)), "totals": totals}
        return Response(orjson.dumps(shown), media_type="application/json")

    @routes.get("/healthz", summary="Is the process alive?")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    return routes


def _unavailable() -> Problem:
    return Problem(503, "unavailable", "The provider has a problem; try again with the same key.", problems.RETRY_AFTER)


def _request(kind: Kind, body: Body) -> Asked:
    return Asked(kind, **body.model_dump(mode="json"))


def _answered(movement: Movement) -> Answered:
    return Answered(
        payment_id=UUID(movement.payment_id),
        outcome="declined" if movement.deed.kind == "declined" else "approved",
        reference=movement.reference,
        reason=movement.deed.reason,
    )


def _shown(movement: Movement) -> dict[str, Any]:
    """As a `MovementView` is written."""
    number, payment_id, at, deed = movement
    return {"id": number, "payment_id": payment_id, "at": at, "reference": movement.reference, **deed._asdict()}
