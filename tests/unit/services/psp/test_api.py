"""The provider's HTTP API, called in this process."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from infra.settings import Settings
from services.psp.api import create_app
from services.psp.ledger import Ledger


class Provider:
    """The provider without a server or delays; the test decides what chance says."""

    def __init__(self, ledger: Ledger, chances: Sequence[float] = (), **settings: Any) -> None:
        quick = Settings(_env_file=None, **{"psp_latency_ms": 0, "psp_late_seconds": 0} | settings)
        self._app = create_app(ledger, quick, partial(next, iter(chances), 1.0))
        self.payment_id = str(uuid4())

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._send("GET", path))

    def post(self, path: str, key: str = "", **body: Any) -> httpx.Response:
        """Posts an operation. Fields that are not given have their usual values."""
        usual: dict[str, Any] = {"payment_id": self.payment_id}
        if path != "/voids":
            usual |= {"amount": 6370, "currency": "EUR"}
        if path == "/authorizations":
            usual |= {"token": "tok_ok"}
        headers = {"Idempotency-Key": key or f"{self.payment_id}:{path}"}
        return asyncio.run(self._send("POST", path, json=usual | body, headers=headers))

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://psp") as client:
            return await client.request(method, path, **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


@pytest.fixture
def provider(ledger: Ledger) -> Provider:
    return Provider(ledger)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, str(response.json().get("type", "")).removeprefix("urn:till:problem:")


def test_money_is_authorised_captured_and_refunded(provider: Provider) -> None:
    for path in ("/authorizations", "/captures", "/refunds"):
        answer = provider.post(path)
        assert (answer.status_code, answer.json()["outcome"]) == (200, "approved")
    ledger = provider.get("/ledger").json()
    assert [movement["kind"] for movement in ledger["movements"]] == ["authorized", "captured", "refunded"]
    assert ledger["totals"] == {
        "EUR": {"authorized": 6370, "declined": 0, "captured": 6370, "voided": 0, "refunded": 6370}
    }


def test_a_declined_card_is_an_answer_and_no_error(provider: Provider) -> None:
    answer = provider.post("/authorizations", token="tok_insufficient_funds")
    assert answer.status_code == 200
    assert (answer.json()["outcome"], answer.json()["reason"]) == ("declined", "insufficient funds")


def test_the_same_key_gets_the_same_answer_and_another_body_is_refused(provider: Provider) -> None:
    first = provider.post("/authorizations", key="k1")
    assert provider.post("/authorizations", key="k1").json() == first.json()
    assert code(provider.post("/authorizations", key="k1", amount=1)) == (422, "idempotency-key-reused")
    assert code(provider.post("/captures", key="k1")) == (422, "idempotency-key-reused")


def test_an_operation_against_the_rules_is_refused(provider: Provider) -> None:
    assert code(provider.post("/captures")) == (409, "not-authorized")
    provider.post("/authorizations")
    provider.post("/captures")
    assert code(provider.post("/captures", key="once more")) == (409, "already-captured")
    assert code(provider.post("/voids")) == (409, "already-captured")


def test_the_provider_lists_the_movements_of_a_payment(provider: Provider) -> None:
    assert code(provider.get(f"/payments/{provider.payment_id}")) == (404, "payment-unknown")
    answer = provider.post("/authorizations").json()
    provider.post("/voids")
    shown = provider.get(f"/payments/{provider.payment_id}").json()
    assert [(it["kind"], it["amount"]) for it in shown["movements"]] == [("authorized", 6370), ("voided", 6370)]
    assert shown["movements"][0]["reference"] == answer["reference"]


def test_the_ledger_can_be_read_from_a_given_movement_on(provider: Provider) -> None:
    provider.post("/authorizations")
    [first] = provider.get("/ledger").json()["movements"]
    provider.post("/voids")
    later = provider.get(f"/ledger?after={first['id']}").json()
    assert [movement["kind"] for movement in later["movements"]] == ["voided"]
    assert later["totals"]["EUR"]["authorized"] == 6370


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0},
        {"amount": -5},
        {"amount": 12.5},
        {"amount": "6370"},
        {"amount": 10**13},
        {"currency": "euro"},
        {"payment_id": "42"},
        {"token": ""},
        {"token": "tok ok"},
        {"more": "fields"},
    ],
)
def test_an_invalid_operation_is_refused(provider: Provider, wrong: dict[str, Any]) -> None:
    assert code(provider.post("/authorizations", **wrong)) == (422, "invalid")
    assert provider.get("/ledger").json()["movements"] == []


def test_an_operation_needs_an_idempotency_key(provider: Provider) -> None:
    body = {"payment_id": provider.payment_id}
    assert code(asyncio.run(provider._send("POST", "/voids", json=body))) == (422, "invalid")


def test_a_body_that_is_no_json_or_too_large_is_refused(provider: Provider) -> None:
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    for body, refusal in ((b"{", (400, "json-invalid")), (b'"' + b"1" * 5000 + b'"', (413, "body-too-large"))):
        assert code(asyncio.run(provider._send("POST", "/voids", content=body, headers=headers))) == refusal


@pytest.mark.parametrize(
    ("path", "field"),
    [("/authorizations", "token"), ("/authorizations", "note"), ("/captures", "currency"), ("/voids", "payment_id")],
)
def test_a_card_number_is_refused_wherever_it_stands_and_not_repeated(
    provider: Provider, path: str, field: str
) -> None:
    answer = provider.post(path, **{field: "4111 1111 1111 1111"})
    assert code(answer) == (422, "card-number")
    assert "4111" not in answer.text
    assert code(provider.post("/voids", key="4111111111111111")) == (422, "card-number")


def test_a_flaky_card_fails_twice_for_each_key_then_works(provider: Provider) -> None:
    flaky = {"token": "tok_flaky"}
    assert [provider.post("/authorizations", **flaky).status_code for _ in range(4)] == [503, 503, 200, 200]
    assert [provider.post("/captures").status_code for _ in range(4)] == [503, 503, 200, 200]
    assert len(provider.get("/ledger").json()["movements"]) == 2


def test_a_late_answer_comes_at_once_when_it_is_asked_for_again(ledger: Ledger) -> None:
    late = Provider(ledger, psp_late_seconds=1.5)
    began = time.monotonic()
    first = late.post("/authorizations", token="tok_timeout")
    between = time.monotonic()
    assert late.post("/authorizations", token="tok_timeout").json() == first.json()
    assert between - began >= 1.5 > time.monotonic() - between


def test_a_failure_comes_before_the_work_or_after_it(ledger: Ledger) -> None:
    before = Provider(ledger, [0.0, 0.0], psp_failure_rate=0.1)
    assert code(before.post("/authorizations")) == (503, "unavailable")
    assert before.get("/ledger").json()["movements"] == []

    afterwards = Provider(ledger, [0.0, 0.9], psp_failure_rate=0.1)
    assert code(afterwards.post("/authorizations")) == (503, "unavailable")
    assert len(afterwards.get("/ledger").json()["movements"]) == 1
    assert afterwards.post("/authorizations").json()["outcome"] == "approved"
    assert len(afterwards.get("/ledger").json()["movements"]) == 1


def test_an_answer_names_its_payment(provider: Provider) -> None:
    assert UUID(provider.post("/authorizations").json()["payment_id"]) == UUID(provider.payment_id)


def test_the_provider_reports_that_it_is_alive(provider: Provider) -> None:
    assert provider.get("/healthz").json() == {"status": "alive"}
