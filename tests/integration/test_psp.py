"""The provider as a process: what it has said is in its book, whatever happens to it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from infra.local.ports import free_ports

PATIENCE = 20.0


@contextmanager
def provider(home: Path, port: int, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"TILL_HOME": str(home), "TILL_PSP_PORT": str(port)} | settings
    with subprocess.Popen([sys.executable, "-m", "services.psp"], env=environment) as process:
        try:
            _wait_until_it_answers(process, port)
            yield process
        finally:
            process.kill()


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "the provider ended by itself"
        assert time.monotonic() < deadline, "the provider did not come up"
        try:
            httpx.get(f"http://127.0.0.1:{port}/healthz")
        except httpx.TransportError:
            time.sleep(0.02)
        else:
            return


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


def authorize(port: int, payment_id: str, token: str = "tok_ok", timeout: float = PATIENCE) -> httpx.Response:
    return httpx.post(
        f"http://127.0.0.1:{port}/authorizations",
        json={"payment_id": payment_id, "amount": 6370, "currency": "EUR", "token": token},
        headers={"Idempotency-Key": f"{payment_id}:authorize"},
        timeout=timeout,
    )


def capture(port: int, payment_id: str) -> httpx.Response:
    return httpx.post(
        f"http://127.0.0.1:{port}/captures",
        json={"payment_id": payment_id, "amount": 6370, "currency": "EUR"},
        headers={"Idempotency-Key": f"{payment_id}:capture"},
        timeout=PATIENCE,
    )


def test_what_it_has_answered_survives_kill_9(tmp_path: Path, port: int) -> None:
    answered: dict[str, str] = {}

    def buy(payment_id: str) -> None:
        try:
            authorize(port, payment_id).raise_for_status()
            answered[payment_id] = capture(port, payment_id).raise_for_status().json()["reference"]
        except httpx.TransportError:
            pass  # killed: nobody was told

    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0") as process, ThreadPoolExecutor(8) as shoppers:
        payments = [str(uuid4()) for _ in range(400)]
        buying = [shoppers.submit(buy, payment_id) for payment_id in payments]
        deadline = time.monotonic() + PATIENCE
        while len(answered) < 50:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        for bought in buying:
            bought.result()

    assert 50 <= len(answered) < len(payments), "it was to be killed in the middle"
    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0"):
        movements = httpx.get(f"http://127.0.0.1:{port}/ledger").json()["movements"]
        captured = {it["payment_id"]: it["reference"] for it in movements if it["kind"] == "captured"}
        assert answered.items() <= captured.items()
        assert len(captured) == sum(it["kind"] == "captured" for it in movements)
        for payment_id, reference in list(answered.items())[:10]:
            assert capture(port, payment_id).json()["reference"] == reference
        assert len(httpx.get(f"http://127.0.0.1:{port}/ledger").json()["movements"]) == len(movements)


def test_after_an_answer_that_did_not_come_it_can_be_asked_what_it_did(tmp_path: Path, port: int) -> None:
    payment_id = str(uuid4())
    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0", TILL_PSP_LATE_SECONDS="60"):
        with pytest.raises(httpx.ReadTimeout):
            authorize(port, payment_id, token="tok_timeout", timeout=0.5)
        done = httpx.get(f"http://127.0.0.1:{port}/payments/{payment_id}").json()["movements"]
        assert [movement["kind"] for movement in done] == ["authorized"]
        again = authorize(port, payment_id, token="tok_timeout", timeout=PATIENCE).json()
        assert (again["outcome"], again["reference"]) == ("approved", done[0]["reference"])


def test_it_takes_as_long_as_it_is_told_to(tmp_path: Path, port: int) -> None:
    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="150"):
        began = time.monotonic()
        authorize(port, str(uuid4())).raise_for_status()
        assert time.monotonic() - began >= 0.15


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    environment = os.environ | {"TILL_HOME": str(tmp_path), "TILL_PSP_FAILURE_RATE": "2"}
    ended = subprocess.run([sys.executable, "-m", "services.psp"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "TILL_PSP_FAILURE_RATE" in ended.stderr
    assert "Traceback" not in ended.stderr
