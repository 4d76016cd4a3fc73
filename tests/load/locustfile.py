"""Puts load on a running shop and audits its books after each run. A violation fails the run.

Web UI: `.venv/bin/python -m locust -f tests/load/locustfile.py`. Headless, on a shop of its own: `make load`.
"""

import logging
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from locust import between, events, task
from locust.runners import MasterRunner, WorkerRunner

from infra.settings import Settings
from infra.simulation.audit.ledger import continue_ledger
from infra.simulation.shoppers.plans import TOKENS
from tests.load.books import FLASH
from tests.load.buyer import Buyer

log = logging.getLogger(__name__)

LEDGER = Settings.load().home / "load" / "ledger.jsonl"
FINISH_SECONDS = 15.0
run = ExitStack()


class BrowseAndBuy(Buyer):
    """Looks around, and buys a few products."""

    weight = 3
    wait_time = between(0.1, 0.6)

    @task(2)
    def browse(self) -> None:
        self.ask("GET", "/v1/products?limit=20")
        self.ask("GET", "/v1/products/{sku}", sku=self._any_sku())

    @task(3)
    def shop(self) -> None:
        self.come_in("browse and buy")
        self.browse()
        lines = {self._any_sku(): random.randint(1, 3) for _ in range(random.randint(1, 3))}
        [payment_token] = random.choices(list(TOKENS), list(TOKENS.values()))
        self.buy(lines, payment_token)

    def _any_sku(self) -> str:
        return random.choice([sku for sku in self.ledger.opening.shelves if not sku.startswith(FLASH)])


class FlashSale(Buyer):
    """Competes for a product of which there are only a few pieces."""

    weight = 1
    wait_time = between(0.1, 0.3)

    @task
    def grab(self) -> None:
        self.come_in("flash sale")
        sku = max(sku for sku in self.ledger.opening.shelves if sku.startswith(FLASH))
        self.ask("GET", "/v1/products/{sku}", sku=sku)
        self.buy({sku: 1}, "tok_ok")


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def add_options(parser: Any) -> None:
    parser.add_argument("--patience", type=float, default=60.0, help="Seconds to wait for the last orders")


@events.init.add_listener  # type: ignore[untyped-decorator]
def get_ready(environment: Any, **_: Any) -> None:
    if isinstance(environment.runner, MasterRunner | WorkerRunner):
        raise SystemExit(
            "Run one process, because one ledger has to record all users. It makes thousands of requests a second."
        )
    environment.stop_timeout = FINISH_SECONDS  # lets purchases that are under way finish
    if environment.parsed_options.headless:
        _open_the_books()  # before the clock of --run-time starts


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Any, **_: Any) -> None:
    if not environment.parsed_options.headless:
        _open_the_books()


@events.test_stop.add_listener  # type: ignore[untyped-decorator]
def check_the_books(environment: Any, **_: Any) -> None:
    run.close()
    if _books("check", "--patience", str(environment.parsed_options.patience)).returncode:
        log.error("The books do not balance.")
        environment.process_exit_code = 1


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def stop_before_the_exit_code_is_taken(environment: Any, **_: Any) -> None:
    environment.runner.stop()


def _open_the_books() -> None:
    if _books("open").returncode:
        raise SystemExit("No shop is running. Start it with: till up")
    Buyer.ledger = run.enter_context(continue_ledger(LEDGER))


def _books(command: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the audit in its own process, because gevent patches what asyncio needs."""
    root = Path(__file__).parents[2]
    return subprocess.run([sys.executable, "-m", "tests.load.books", command, str(LEDGER), *options], cwd=root)
