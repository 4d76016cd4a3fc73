"""Runs the simulated provider on its own port, with its own ledger: `python -m services.psp`."""

import uvicorn

from services.psp.api import create_app
from services.psp.ledger import Ledger
from services.psp.settings import PspSettings
from shared import logs
from shared.errors import OperatorError


def main() -> None:
    try:
        settings = PspSettings.load()
    except OperatorError as error:
        raise SystemExit(f"error: {error.message}\n  → {error.hint}") from error
    logs.configure(settings)
    with Ledger(settings.home / "psp" / "ledger.sqlite") as ledger:
        uvicorn.run(
            create_app(ledger, settings),
            host=settings.shop_host,
            port=settings.psp_port,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=1,
        )


main()
