"""What is said of payments over HTTP: the JSON that is taken and answered, with examples."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Path
from pydantic import BaseModel

from shared.http.examples import CUSTOMER_ID, ORDER_ID, PAYMENT_ID, TOTAL, like, taken_like
from shared.http.models import Price
from shared.http.openapi import refusal

PaymentId = Annotated[UUID, Path(examples=[PAYMENT_ID])]
UNKNOWN = refusal(404, "payment-unknown", "There is no such payment, or it is somebody else's.")
NOT_CAPTURED = refusal(409, "payment-not-captured", "Nothing has been taken that could be refunded.")
NOT_HELD = refusal(409, "payment-not-held", "This payment is not waiting for a review.")


class PaymentView(BaseModel):
    model_config = like(
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
    model_config = taken_like({"decision": "approve"})

    decision: Literal["approve", "reject"]
