"""The client of the payment provider: what counts as an answer, and that it is closed."""

import httpx
import pytest

from services.common.money import Money
from services.payment.commands import RecordProviderAnswer
from services.payment.decider import Charge, Operation
from services.payment.provider import FAILURES_TO_OPEN, Provider, open_provider
from services.payment.settings import PaymentSettings
from shared.scheduling.errands import NotAnswered

pytestmark = pytest.mark.anyio

CAPTURE = Operation("capture", Charge("p1", "o1", "ann", Money(1190, "EUR"), "tok_ok"))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Psp(httpx.AsyncBaseTransport):
    """Answers every request the same way, and counts them."""

    def __init__(self, status: int, **body: str) -> None:
        self.requests: list[httpx.Request] = []
        self._status, self._body = status, body

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self._status, json=self._body)


def provider(psp: Psp) -> Provider:
    return Provider(httpx.AsyncClient(transport=psp, base_url="http://psp"))


async def test_an_approval_is_recorded_under_the_operations_own_key() -> None:
    psp = Psp(200, outcome="approved", reference="r1", reason="")
    assert await provider(psp).ask(CAPTURE) == RecordProviderAnswer("capture", "approved", "r1", "")
    assert psp.requests[0].headers["Idempotency-Key"] == "p1:capture"


@pytest.mark.parametrize("status", [409, 422])
async def test_a_refusal_with_a_reason_is_an_answer(status: int) -> None:
    refused = await provider(Psp(status, detail="already voided")).ask(CAPTURE)
    assert refused == RecordProviderAnswer("capture", "declined", "", "already voided")


@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_any_other_error_says_nothing_about_the_payment(status: int) -> None:
    with pytest.raises(NotAnswered):
        await provider(Psp(status)).ask(CAPTURE)


async def test_a_provider_that_keeps_failing_is_not_asked_for_a_while() -> None:
    psp = Psp(503)
    failing = provider(psp)
    for _ in range(FAILURES_TO_OPEN + 5):
        with pytest.raises(NotAnswered):
            await failing.ask(CAPTURE)
    assert len(psp.requests) == FAILURES_TO_OPEN


async def test_the_http_client_is_closed_with_the_worker() -> None:
    async with open_provider(PaymentSettings()) as ask:
        pass
    with pytest.raises(RuntimeError, match="client has been closed"):
        await ask(CAPTURE)
