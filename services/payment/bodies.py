"""Request and response bodies of the payment API, with their examples."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Path
from pydantic import BaseModel

from services.common.bodies import Price, price_body
from services.common.examples import CUSTOMER_ID, ORDER_ID, PAYMENT_ID, TOTAL, request_body, response_body
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
from shared.decider import Versioned
from shared.http.openapi import refusal

PaymentId = Annotated[UUID, Path(examples=[PAYMENT_ID])]
UNKNOWN = refusal(404, "payment-unknown", "There is no such payment, or it is somebody else's.")
NOT_CAPTURED = refusal(409, "payment-not-captured", "Nothing has been taken that could be refunded.")
NOT_HELD = refusal(409, "payment-not-held", "This payment is not waiting for a review.")

STATE_NAMES: dict[type, str] = {
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


class PaymentBody(BaseModel):
    model_config = response_body(
        {
            "payment_id": PAYMENT_ID,
            "order_id": ORDER_ID,
            "customer_id": CUSTOMER_ID,
            "status": "captured",
            "amount": TOTAL,
            "version": 4,
        }
    )

    payment_id: str
    order_id: str
    customer_id: str
    status: str
    amount: Price
    version: int


class Review(BaseModel):
    model_config = request_body({"decision": "approve"})

    decision: Literal["approve", "reject"]


def payment_body(found: Versioned[Payment]) -> dict[str, Any]:
    """Returns a `PaymentBody` of the payment's state."""
    payment = found.state
    assert not isinstance(payment, Unrequested)
    charge = payment.charge
    return {
        "payment_id": charge.payment_id,
        "order_id": charge.order_id,
        "customer_id": charge.customer_id,
        "status": STATE_NAMES[type(payment)],
        "amount": price_body(charge.amount),
        "version": found.version,
    }
