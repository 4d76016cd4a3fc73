"""The provider as a process: every answer it gave is in its ledger, whatever happens to it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import httpx
import pytest

from infra.local.processes.ports import free_ports

PATIENCE = 60.0


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


class Shopper:
    """Sends operations with the idempotency keys that the payment service would use."""

    def __init__(self, port: int) -> None:
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)

    def authorize(self, payment_id: str, token: str = "tok_ok", timeout: float = PATIENCE) -> dict[str, Any]:
        return self._post("authorizations", payment_id, timeout, token=token)

    def capture(self, payment_id: str) -> dict[str, Any]:
        return self._post("captures", payment_id, PATIENCE)

    def movements(self, path: str = "/ledger") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http.get(path).json()["movements"]
        return found

    def _post(self, what: str, payment_id: str, timeout: float, **more: str) -> dict[str, Any]:
        body = {"payment_id": payment_id, "amount": 6370, "currency": "EUR"} | more
        headers = {"Idempotency-Key": f"{payment_id}:{what}"}
        answer = self._http.post(f"/{what}", json=body, headers=headers, timeout=timeout).raise_for_status()
        answered: dict[str, Any] = answer.json()
        return answered

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def shopper(port: int) -> Iterator[Shopper]:
    with closing(Shopper(port)) as shopper:
        yield shopper


def test_every_answer_of_the_provider_survives_kill_9(tmp_path: Path, port: int, shopper: Shopper) -> None:
    answered: dict[str, str] = {}
    killed = Event()

    def buy_on_and_on() -> None:
        with suppress(httpx.TransportError):  # killed before it answered
            while not killed.is_set():
                payment_id = str(uuid4())
                shopper.authorize(payment_id)
                answered[payment_id] = shopper.capture(payment_id)["reference"]

    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0") as process, ThreadPoolExecutor(8) as shoppers:
        buying = [shoppers.submit(buy_on_and_on) for _ in range(8)]
        deadline = time.monotonic() + PATIENCE
        while len(answered) < 50:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        killed.set()
        for bought in buying:
            bought.result()

    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0"):
        movements = shopper.movements()
        captured = {it["payment_id"]: it["reference"] for it in movements if it["kind"] == "captured"}
        assert answered.items() <= captured.items()
        assert len(captured) == sum(it["kind"] == "captured" for it in movements)
        again = {payment_id: shopper.capture(payment_id)["reference"] for payment_id in answered}
        assert again == answered
        assert shopper.movements() == movements


def test_after_a_lost_answer_the_provider_can_be_asked_what_it_did(tmp_path: Path, port: int, shopper: Shopper) -> None:
    payment_id = str(uuid4())
    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="0", TILL_PSP_LATE_SECONDS="60"):
        with pytest.raises(httpx.ReadTimeout):
            shopper.authorize(payment_id, token="tok_timeout", timeout=1)
        [done] = shopper.movements(f"/payments/{payment_id}")
        assert done["kind"] == "authorized"
        again = shopper.authorize(payment_id, token="tok_timeout")
        assert (again["outcome"], again["reference"]) == ("approved", done["reference"])


def test_the_provider_takes_as_long_as_its_setting_says(tmp_path: Path, port: int, shopper: Shopper) -> None:
    with provider(tmp_path, port, TILL_PSP_LATENCY_MS="150"):
        began = time.monotonic()
        shopper.authorize(str(uuid4()))
        assert time.monotonic() - began >= 0.15


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    environment = os.environ | {"TILL_HOME": str(tmp_path), "TILL_PSP_FAILURE_RATE": "2"}
    ended = subprocess.run([sys.executable, "-m", "services.psp"], env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "TILL_PSP_FAILURE_RATE" in ended.stderr
    assert "Traceback" not in ended.stderr
