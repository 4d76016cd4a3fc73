"""`python -m services.psp`: the provider, on its own port and with its own memory."""

import uvicorn

from services.psp.api import create_app
from services.psp.ledger import Ledger
from shared import logs
from shared.errors import OperatorError
from shared.settings import Settings


def main() -> None:
    try:
        settings = Settings.load()
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
