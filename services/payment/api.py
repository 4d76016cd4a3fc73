"""Payments over HTTP: customers see their own, support refunds them and reviews those that are held."""

from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel

from services.payment.commands import RefundPayment, ReviewPayment
from services.payment.decider import (
    Authorized,
    Authorizing,
    Cancelled,
    Captured,
    Capturing,
    Declined,
    Held,
    Payment,
    Refunded,
    Refunding,
    Unrequested,
    Voided,
    Voiding,
)
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Call, Position, Support, answer_read
from shared.http.models import Price
from shared.http.routes import LeanRoute
from shared.service import Runtime

STATUSES = {"payment-unknown": 404}
STATUS: dict[type, str] = {
    Held: "in_review",
    Authorizing: "authorizing",
    Authorized: "authorized",
    Capturing: "capturing",
    Captured: "captured",
    Voiding: "voiding",
    Voided: "voided",
    Refunding: "refunding",
    Refunded: "refunded",
    Declined: "declined",
    Cancelled: "cancelled",
}


class PaymentView(BaseModel):
    payment_id: str
    order_id: str
    customer_id: str
    status: str
    amount: Price
    version: int


class Review(BaseModel):
    decision: Literal["approve", "reject"]


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["payment"], route_class=LeanRoute)
    handler = runtime.handler

    async def reached(position: Position) -> bool:
        return (await handler.state(position.stream_id)).version >= position.version

    @routes.get("/v1/payments/{payment_id}", response_model=PaymentView, summary="A payment")
    async def payment(payment_id: UUID, call: Authenticated) -> Response:
        await call.wait_for(reached)
        handled = await handler.state(f"payment:{payment_id}")
        if isinstance(handled.state, Unrequested) or not _may_see(call, handled.state.charge.customer_id):
            raise Refused("payment-unknown", "There is no such payment.")
        return answer_read(handled, _rendered(handled))

    @routes.post("/v1/payments/{payment_id}/refund", response_model=PaymentView, summary="Give the money back")
    async def refund(payment_id: UUID, call: Support) -> Response:
        return await call.perform(handler, f"payment:{payment_id}", RefundPayment(), _rendered)

    @routes.post("/v1/payments/{payment_id}/review", response_model=PaymentView, summary="Decide on a held payment")
    async def review(payment_id: UUID, review: Review, call: Support) -> Response:
        return await call.perform(handler, f"payment:{payment_id}", ReviewPayment(review.decision), _rendered)

    return routes


def _may_see(call: Call, customer_id: str) -> bool:
    return customer_id == call.principal.subject or "support" in call.principal.roles


def _rendered(handled: Handled[Payment, Any]) -> dict[str, Any]:
    payment = handled.state
    assert not isinstance(payment, Unrequested)
    charge = payment.charge
    return {
        "payment_id": charge.payment_id,
        "order_id": charge.order_id,
        "customer_id": charge.customer_id,
        "status": STATUS[type(payment)],
        "amount": {"amount": charge.amount.amount, "currency": charge.amount.currency},
        "version": handled.version,
    }
