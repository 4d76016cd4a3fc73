"""Payments over HTTP: customers see their own, support refunds them and reviews those that are held."""

from typing import Any

from fastapi import APIRouter, Response

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
from services.payment.models import NOT_CAPTURED, NOT_HELD, UNKNOWN, PaymentId, PaymentView, Review
from shared.errors import Refused
from shared.handler import Handled
from shared.http.calls import Authenticated, Position, Support, answer_read
from shared.http.models import price_view
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


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["payment"], route_class=LeanRoute)
    handler = runtime.handler

    async def stored(position: Position) -> bool:
        return (await handler.state(position.stream_id)).version >= position.version

    @routes.get("/v1/payments/{payment_id}", response_model=PaymentView, summary="A payment", responses=UNKNOWN)
    async def payment(payment_id: PaymentId, call: Authenticated) -> Response:
        stream_id = f"payment:{payment_id}"

        async def look() -> Handled[Payment, Any] | None:
            handled = await handler.state(stream_id)
            if isinstance(handled.state, Unrequested) or not call.principal.may_see(handled.state.charge.customer_id):
                return None
            return handled

        if not (handled := await call.find(look, "payment")):
            raise Refused("payment-unknown", "There is no such payment.")
        if call.min_position:
            await call.wait_for({stream_id: stored})
            handled = await handler.state(stream_id)
        return answer_read(handled, _rendered(handled))

    @routes.post(
        "/v1/payments/{payment_id}/refund",
        response_model=PaymentView,
        summary="Give the money back",
        responses=UNKNOWN | NOT_CAPTURED,
    )
    async def refund(payment_id: PaymentId, call: Support) -> Response:
        return await call.perform(handler, f"payment:{payment_id}", RefundPayment(), _rendered)

    @routes.post(
        "/v1/payments/{payment_id}/review",
        response_model=PaymentView,
        summary="Decide on a held payment",
        responses=UNKNOWN | NOT_HELD,
    )
    async def review(payment_id: PaymentId, review: Review, call: Support) -> Response:
        return await call.perform(handler, f"payment:{payment_id}", ReviewPayment(review.decision), _rendered)

    return routes


def _rendered(handled: Handled[Payment, Any]) -> dict[str, Any]:
    payment = handled.state
    assert not isinstance(payment, Unrequested)
    charge = payment.charge
    return {
        "payment_id": charge.payment_id,
        "order_id": charge.order_id,
        "customer_id": charge.customer_id,
        "status": STATUS[type(payment)],
        "amount": price_view(charge.amount),
        "version": handled.version,
    }
