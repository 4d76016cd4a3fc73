"""The payment provider, the shop's only call to the outside: asked with an idempotency key until it answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from services.payment.circuit_breaker import CircuitBreaker, CircuitOpen
from services.payment.commands import Kind, RecordProviderAnswer
from services.payment.decider import Operation
from services.payment.settings import PaymentSettings
from shared.recovery.crash_points import crashpoint
from shared.scheduling.errands import NotAnswered

PATHS: dict[Kind, str] = {
    "authorize": "/authorizations",
    "capture": "/captures",
    "void": "/voids",
    "refund": "/refunds",
}
DECLINED = (httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY)
"""Statuses of a refusal with a reason, which is an answer. Any other error says nothing about the payment."""
Ask = Callable[[Operation], Awaitable[RecordProviderAnswer]]
FAILURES_TO_OPEN, OPEN_SECONDS = 10, 2.0


@asynccontextmanager
async def open_provider(settings: PaymentSettings) -> AsyncIterator[Ask]:
    """Opens the HTTP client of the provider, and closes it at the end of the block."""
    async with httpx.AsyncClient(base_url=settings.psp_url, timeout=settings.psp_timeout) as http:
        yield Provider(http).ask


class Provider:
    """The client of the payment provider, behind a circuit breaker."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._breaker = CircuitBreaker(FAILURES_TO_OPEN, OPEN_SECONDS)

    async def ask(self, operation: Operation) -> RecordProviderAnswer:
        """Asks for an operation. It is safe to repeat: for a known key, the provider only repeats its answer."""
        try:
            with self._breaker.call():
                answer = await self._post(operation)
        except (httpx.TransportError, CircuitOpen) as error:
            raise NotAnswered(repr(error)) from error
        if answer.is_error and answer.status_code not in DECLINED:
            raise NotAnswered(f"{answer.status_code}: {answer.text}")
        body = answer.json()
        # Answered, not recorded: after a death here the same key is asked again, and gets the same answer.
        crashpoint("answered by the provider, not recorded")
        if answer.is_error:
            return RecordProviderAnswer(operation.kind, "declined", "", body["detail"])
        return RecordProviderAnswer(operation.kind, body["outcome"], body["reference"], body["reason"])

    async def _post(self, operation: Operation) -> httpx.Response:
        answer = await self._http.post(
            PATHS[operation.kind], json=_body(operation), headers={"Idempotency-Key": operation.key}
        )
        if answer.is_server_error:
            raise NotAnswered(f"{answer.status_code}: {answer.text}")
        return answer


def _body(operation: Operation) -> dict[str, Any]:
    charge = operation.charge
    body: dict[str, Any] = {"payment_id": charge.payment_id}
    if operation.kind != "void":
        body |= {"amount": charge.amount.amount, "currency": charge.amount.currency}
    if operation.kind == "authorize":
        body["token"] = charge.payment_token
    return body
