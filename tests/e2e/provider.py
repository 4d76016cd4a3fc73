"""Runs the simulated payment provider as a real process next to the shop."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

START_SECONDS = 120.0


@contextmanager
def provider(environment: dict[str, str]) -> Iterator[str]:
    """Starts the provider on the port of `TILL_PSP_PORT` and yields its address once it answers."""
    url = f"http://127.0.0.1:{environment['TILL_PSP_PORT']}"
    log = Path(environment["TILL_HOME"]) / "psp.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.psp"],
            env=os.environ | environment,
            cwd=environment["TILL_HOME"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(15)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=2).is_success
    except httpx.TransportError:
        return False


def moved(url: str, payment_id: str) -> list[str]:
    """Returns the kinds of movements of a payment, in order: `authorized`, `captured`, ..."""
    ledger: dict[str, Any] = httpx.get(f"{url}/ledger", timeout=10).json()
    return [m["kind"] for m in ledger["movements"] if m["payment_id"] == payment_id]


def net(url: str, payment_ids: Sequence[str]) -> int:
    """Returns what was captured for these payments and not refunded."""
    sign = {"captured": 1, "refunded": -1}
    ledger: dict[str, Any] = httpx.get(f"{url}/ledger", timeout=10).json()
    return sum(sign.get(m["kind"], 0) * m["amount"] for m in ledger["movements"] if m["payment_id"] in payment_ids)
