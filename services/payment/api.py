"""The payment API: customers see their own payments, support refunds them and reviews those that are held."""

from functools import partial
from uuid import UUID

from fastapi import APIRouter, Response

from services.common.roles import Support, may_see
from services.payment.bodies import NOT_CAPTURED, NOT_HELD, UNKNOWN, PaymentBody, PaymentId, Review, payment_body
from services.payment.commands import Command, RefundPayment, ReviewPayment
from services.payment.decider import Payment, Unrequested
from shared.decider import Versioned
from shared.errors import Refused
from shared.http.calls import Authenticated, Call
from shared.http.positions import is_stored
from shared.http.responses import answer_read
from shared.service import Runtime

REFUSAL_STATUSES = {"payment-unknown": 404}


def router(runtime: Runtime) -> APIRouter:
    routes = APIRouter(tags=["payment"])
    handler = runtime.handler
    stored = partial(is_stored, handler)

    async def perform(payment_id: UUID, command: Command, call: Call) -> Response:
        stream_id = f"payment:{payment_id}"
        await call.wait_for({stream_id: stored})
        return await call.perform(handler, stream_id, command, payment_body)

    @routes.get("/v1/payments/{payment_id}", response_model=PaymentBody, summary="A payment", responses=UNKNOWN)
    async def payment(payment_id: PaymentId, call: Authenticated) -> Response:
        stream_id = f"payment:{payment_id}"

        async def look() -> Versioned[Payment] | None:
            found = await handler.state(stream_id)
            if isinstance(found.state, Unrequested) or not may_see(call.principal, found.state.charge.customer_id):
                return None
            return found

        if not (found := await call.find(look, "payment")):
            raise Refused("payment-unknown", "There is no such payment.")
        if call.min_position:
            await call.wait_for({stream_id: stored})
            found = await handler.state(stream_id)
        return answer_read(found, payment_body(found))

    @routes.post(
        "/v1/payments/{payment_id}/refund",
        response_model=PaymentBody,
        summary="Give the money back",
        responses=UNKNOWN | NOT_CAPTURED,
    )
    async def refund(payment_id: PaymentId, call: Support) -> Response:
        return await perform(payment_id, RefundPayment(), call)

    @routes.post(
        "/v1/payments/{payment_id}/review",
        response_model=PaymentBody,
        summary="Decide on a held payment",
        responses=UNKNOWN | NOT_HELD,
    )
    async def review(payment_id: PaymentId, review: Review, call: Support) -> Response:
        return await perform(payment_id, ReviewPayment(review.decision), call)

    return routes
