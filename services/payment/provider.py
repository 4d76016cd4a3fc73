"""The payment provider, the only outside call of the shop: asked with a key until it answers, never guessed at."""

import random
import time
from dataclasses import replace
from typing import Any

import httpx

from services.payment.commands import Kind, RecordProviderAnswer
from services.payment.decider import Operation, next_operation
from shared.crashpoints import crashpoint
from shared.envelope import Context, millis, now
from shared.errors import Refused
from shared.service import Runtime
from shared.settings import Settings

PATHS: dict[Kind, str] = {
    "authorize": "/authorizations",
    "capture": "/captures",
    "void": "/voids",
    "refund": "/refunds",
}
AGAINST_ITS_RULES = (httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY)
"""A no with a reason is an answer. Any other error tells nothing about the payment."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0
BREAK_AFTER, BREAK_SECONDS = 10, 2.0


class NoAnswer(Exception):
    """It did not say what it did, and may have done it: ask again with the same key."""


class Breaker:
    """After a row of failures nobody calls for a while; then one does, and its luck decides."""

    def __init__(self) -> None:
        self._failures = 0
        self._closed_until = 0.0

    def check(self) -> None:
        if self._failures >= BREAK_AFTER and time.monotonic() < self._closed_until:
            raise NoAnswer("the provider has failed too often of late")

    def note(self, worked: bool) -> None:
        self._failures = 0 if worked else self._failures + 1
        self._closed_until = time.monotonic() + BREAK_SECONDS


class Provider:
    def __init__(self, settings: Settings) -> None:
        self._http = httpx.AsyncClient(base_url=settings.psp_url, timeout=settings.psp_timeout)
        self._breaker = Breaker()

    async def ask(self, operation: Operation) -> RecordProviderAnswer:
        """The key makes it safe to ask as often as it takes: what was done is told again, not done again."""
        self._breaker.check()
        try:
            answer = await self._http.post(
                PATHS[operation.kind], json=_body(operation), headers={"Idempotency-Key": operation.key}
            )
        except httpx.TransportError as error:
            self._breaker.note(worked=False)
            raise NoAnswer(repr(error)) from error
        self._breaker.note(worked=answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR)
        if answer.is_error and answer.status_code not in AGAINST_ITS_RULES:
            raise NoAnswer(f"{answer.status_code}: {answer.text}")
        said = answer.json()
        if answer.is_error:
            return RecordProviderAnswer(operation.kind, "declined", "", said["detail"])
        return RecordProviderAnswer(operation.kind, said["outcome"], said["reference"], said["reason"])

    async def close(self) -> None:
        await self._http.aclose()


def _body(operation: Operation) -> dict[str, Any]:
    charge = operation.charge
    body: dict[str, Any] = {"payment_id": charge.payment_id}
    if operation.kind != "void":
        body |= {"amount": charge.amount.amount, "currency": charge.amount.currency}
    if operation.kind == "authorize":
        body["token"] = charge.payment_token
    return body


class Errands:
    """What a payment stream wants of the provider, done when its moment has come."""

    def __init__(self, runtime: Runtime, provider: Provider) -> None:
        self._handler = runtime.handler
        self._provider = provider
        self._tries: dict[str, int] = {}

    async def look_at(self, stream_id: str, because: Context) -> int | None:
        operation = next_operation((await self._handler.state(stream_id)).state)
        if operation is None:
            return None
        try:
            answer = await self._provider.ask(operation)
        except NoAnswer:
            return self._later(operation.key)
        self._tries.pop(operation.key, None)
        # Answered, not recorded: after a death here the same key is asked again, and tells the same.
        crashpoint("answered by the provider, not recorded")
        try:
            done = await self._handler.handle(stream_id, answer, replace(because, actor="service:payment"))
        except Refused:
            return None
        return self._later(operation.key) if not getattr(done, "events", ()) else None

    def _later(self, key: str) -> int:
        """Exponential, with jitter: those who failed together do not come back together."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        wait = min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT) * random.uniform(0.5, 1)
        return millis(now()) + int(wait * 1000)
