"""The provider's HTTP API. Every operation carries an Idempotency-Key: it is done once, and its answer repeated."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from services.common.cards import refuse_card_numbers
from services.psp import rules
from services.psp.ledger import Ledger, Movement
from services.psp.settings import PspSettings
from services.psp.tokens import behaviour_of
from shared.http import problems
from shared.http.app import BodyLimit
from shared.http.problems import Problem

Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Amount = Annotated[int, Field(strict=True, ge=1, le=10**12, description="Minor units.")]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$")]

REFUSAL_STATUSES = {"idempotency-key-reused": 422}
MAX_MOVEMENT_ID = 2**62
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
    reason: Annotated[str, Field(description="Why it was declined.")]


class MovementBody(BaseModel):
    id: int
    payment_id: UUID
    kind: Literal["authorized", "declined", "captured", "voided", "refunded"]
    amount: int
    currency: str
    token: str
    reference: str
    reason: str
    at: str


class PaymentBody(BaseModel):
    payment_id: UUID
    movements: list[MovementBody]


class LedgerBody(BaseModel):
    movements: list[MovementBody]
    totals: dict[str, dict[str, int]]


async def no_card_numbers(request: Request, key: Key) -> None:
    """Refuses card numbers before anything is stored or logged. A body that is no JSON is refused by its model."""
    try:
        sent = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        sent = {}
    refuse_card_numbers([sent, key])


def create_app(ledger: Ledger, settings: PspSettings, chance: Callable[[], float] = random.random) -> FastAPI:
    app = FastAPI(title="Till Roll: the payment provider, simulated", version="1")
    app.state.statuses = REFUSAL_STATUSES
    problems.install(app)
    app.add_middleware(BodyLimit, limit=BODY_LIMIT)
    app.include_router(_operations(ledger, settings, chance))
    app.include_router(_reads(ledger))
    return app


def _operations(ledger: Ledger, settings: PspSettings, chance: Callable[[], float]) -> APIRouter:
    routes = APIRouter(dependencies=[Depends(no_card_numbers)])
    failed: Counter[str] = Counter()

    async def perform(key: str, request: rules.Request) -> Answered:
        await asyncio.sleep(settings.psp_latency_ms / 1000)
        behaviour = behaviour_of(request.token or await run_in_threadpool(ledger.token_of, request.payment_id))
        if failed[key] < behaviour.failures:
            failed[key] += 1
            raise _unavailable()
        fails = chance() < settings.psp_failure_rate
        if fails and chance() < 0.5:
            raise _unavailable()
        answer = await run_in_threadpool(ledger.answer, key, request)
        if behaviour.is_late and answer.is_new:
            await asyncio.sleep(settings.psp_late_seconds)
        if fails:
            raise _unavailable()  # the work is done, but the caller does not learn it
        return _answered(answer.movement)

    @routes.post("/authorizations", summary="Authorise an amount")
    async def authorize(body: Authorization, key: Key) -> Answered:
        return await perform(key, _request("authorize", body))

    @routes.post("/captures", summary="Capture an authorised amount, once")
    async def capture(body: Amounted, key: Key) -> Answered:
        return await perform(key, _request("capture", body))

    @routes.post("/voids", summary="Void an authorisation that was not captured")
    async def void(body: Body, key: Key) -> Answered:
        return await perform(key, _request("void", body))

    @routes.post("/refunds", summary="Refund a captured amount or a part of it")
    async def refund(body: Amounted, key: Key) -> Answered:
        return await perform(key, _request("refund", body))

    return routes


def _reads(ledger: Ledger) -> APIRouter:
    routes = APIRouter()

    @routes.get("/payments/{payment_id}", summary="The movements of a payment, for when an answer was lost")
    def payment(payment_id: UUID) -> PaymentBody:
        found = ledger.of_payment(str(payment_id))
        if not found:
            raise Problem(404, "payment-unknown", "Nothing was ever done for this payment.")
        return PaymentBody(payment_id=payment_id, movements=[MovementBody(**_shown(it)) for it in found])

    @routes.get("/ledger", summary="All movements of money, and their sums by currency", response_model=LedgerBody)
    def show(
        after: Annotated[int, Query(ge=0, le=MAX_MOVEMENT_ID, description="Only movements after this id.")] = 0,
    ) -> Response:
        movements, totals = ledger.since(after)
        # A model for each movement would take ten times as long, and there may be very many.
        shown = {"movements": list(map(_shown, movements)), "totals": totals}
        return Response(orjson.dumps(shown), media_type="application/json")

    @routes.get("/healthz", summary="Is the process alive?")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    return routes


def _unavailable() -> Problem:
    return Problem(503, "unavailable", "The provider has a problem; try again with the same key.", problems.RETRY_AFTER)


def _request(kind: rules.Kind, body: Body) -> rules.Request:
    return rules.Request(kind, **body.model_dump(mode="json"))


def _answered(movement: Movement) -> Answered:
    return Answered(
        payment_id=UUID(movement.payment_id),
        outcome="declined" if movement.entry.kind == "declined" else "approved",
        reference=movement.reference,
        reason=movement.entry.reason,
    )


def _shown(movement: Movement) -> dict[str, Any]:
    """Returns the fields of a `MovementBody`."""
    number, payment_id, at, entry = movement
    return {"id": number, "payment_id": payment_id, "at": at, "reference": movement.reference, **entry._asdict()}
