"""The checks of `till verify` by name. They take a second to import, so only what runs a check imports this."""

from services.operations.verify.checks import flow, folds, lake, log, money
from services.operations.verify.findings import CheckContext, Findings

SERVICE_CHECKS = {"log": log.check, "folds": folds.check}
"""These checks run once for each service."""
SHOP_CHECKS = {"money": money.check, "flow": flow.check, "lake": lake.check}
"""These checks run once for the whole shop."""


async def run_check(context: CheckContext, name: str, service: str) -> list[Findings]:
    if name in SERVICE_CHECKS:
        return await SERVICE_CHECKS[name](context, service)
    return await SHOP_CHECKS[name](context)
