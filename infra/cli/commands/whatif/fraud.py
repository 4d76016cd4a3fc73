"""`till whatif fraud`: judges past payments by other fraud rules, and compares with today's."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.table import Table
from rich.text import Text

from infra.cli.commands.lake.spark import open_lake
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import BadInput
from infra.cli.render.moments import FORMATS, MOMENT, absolute
from infra.cli.render.progress import progress
from infra.settings import Settings
from services.common.money import Money
from shared.envelope import from_millis, rfc3339

if TYPE_CHECKING:
    from analytics.fraud.rules import Rules
    from analytics.fraud.whatif import Comparison, Group

PAYMENTS = "silver.payment_events"
Column = Literal["today", "other"]
COLUMNS: tuple[Column, Column] = ("today", "other")
OUTCOMES: dict[str, tuple[str, set[str]]] = {
    "fraud caught": ("fraud", {"held", "refused"}),
    "fraud missed": ("fraud", {"allowed"}),
    "honest, wrongly held": ("honest", {"held"}),
    "honest, wrongly refused": ("honest", {"refused"}),
    "honest, let through": ("honest", {"allowed"}),
    "not known, held": ("unknown", {"held"}),
    "not known, refused": ("unknown", {"refused"}),
    "not known, let through": ("unknown", {"allowed"}),
}


@click.command()
@click.option(
    "--rules", "file", required=True, metavar="FILE", help="Rules in the format of analytics/fraud/rules.toml."
)
@click.option("--from", "start", type=MOMENT, help=f"Only payments from this moment on: {FORMATS}.")
@click.option("--to", "end", type=MOMENT, help="Only payments before this moment.")
@json_option
def fraud(file: str, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """Judge past payments by other rules and by today's, and compare.

    The other rules are in FILE. For both sets of rules, it shows how much fraud is caught and missed, how many honest
    payments are held or refused, and the money. Payments come from the lake, which is as fresh as its last
    `till lake run`.

    For simulated shoppers it is known which payments were fraud (TILL_HOME/simulations). For others, a payment that
    support rejected counts as fraud, one that support approved or that was paid and kept counts as honest, and the rest
    is unknown. Rules that count over a time window also count payments before --from. What people did after a payment
    is taken as it happened, even if the payment would have been refused. "Kept in fact" is the money that was captured
    for such payments and not refunded: for fraud that is caught, this is what would have been saved.

    \b
    Examples:
      cp analytics/fraud/rules.toml stricter.toml        then change a limit in it
      till whatif fraud --rules stricter.toml
      till whatif fraud --rules stricter.toml --from -1d --json
    """
    from analytics.fraud.rules import BrokenRules, load_rules

    settings = Settings.load()
    try:
        other = load_rules(Path(file))
    except BrokenRules as broken:
        raise BadInput(broken.message) from broken
    if start and end and start >= end:
        raise BadInput(f"--from {absolute(start)} is not before --to {absolute(end)}.")
    comparison = _compare(settings, other, start, end, quiet=as_json)
    if as_json:
        print_json(_document(comparison))
    else:
        _show(comparison, file)


def _compare(
    settings: Settings, other: "Rules", start: datetime | None, end: datetime | None, quiet: bool
) -> "Comparison":
    from analytics.fraud.rules import load_rules
    from analytics.lake import LakeFiles
    from infra.simulation.audit.labels import FRAUD, visits_of_orders

    if PAYMENTS not in LakeFiles(settings).tables():
        raise LakeFiles(settings).missing(PAYMENTS)
    ledgers = sorted((settings.home / "simulations").glob("*.jsonl"))
    labels = {order: visit in FRAUD for order, visit in visits_of_orders(ledgers).items()}
    with progress(quiet) as shown, open_lake(settings, shown.note) as lake:
        from analytics.fraud.whatif import Period, compare_rules

        shown.note("payments", "judging them twice")
        found = compare_rules(lake.read(PAYMENTS), load_rules(), other, labels, Period(start, end))
        shown.note("payments", "done")
    return found


def _document(comparison: "Comparison") -> dict[str, Any]:
    return {
        "alerts": {rule: dict(zip(COLUMNS, counts, strict=True)) for rule, counts in comparison.alerts.items()},
        "payments": {
            outcome: {column: _figures(comparison.groups, column, outcome) for column in COLUMNS}
            for outcome in OUTCOMES
        },
        "different": comparison.different,
        "differences": [asdict(it) | {"at": rfc3339(from_millis(it.at))} for it in comparison.differences],
    }


def _figures(groups: "Iterable[Group]", column: Column, outcome: str) -> dict[str, Any]:
    """Sums by currency, in minor units: what was requested, and how much of it was captured and kept in fact."""
    found = [group for group in groups if _is(outcome, column)(group)]
    asked, kept = Counter[str](), Counter[str]()
    for group in found:
        asked[group.currency] += group.amount
        kept[group.currency] += group.amount * group.was_kept
    return {"count": sum(group.payments for group in found), "asked": dict(asked), "kept": dict(kept)}


def _is(outcome: str, column: Column) -> "Callable[[Group], bool]":
    truth, verdicts = OUTCOMES[outcome]
    return lambda group: group.truth == truth and getattr(group, column) in verdicts


def _show(comparison: "Comparison", file: str) -> None:
    alerts = _table("alerts raised", "today", file)
    for rule, counts in comparison.alerts.items():
        alerts.add_row(rule, *map(str, counts))
    out.print(alerts)
    payments = _table("payments", "today", file, "kept in fact, today", f"kept in fact, {file}")
    for outcome in OUTCOMES:
        both = [_figures(comparison.groups, column, outcome) for column in COLUMNS]
        if any(figures["count"] for figures in both):
            payments.add_row(outcome, *(str(it["count"]) for it in both), *(_money(it["kept"]) for it in both))
    out.print(payments)
    _show_differences(comparison)


def _show_differences(comparison: "Comparison") -> None:
    if not comparison.different:
        out.print(Text("No payment would have been judged differently.", "dim"))
        return
    out.print(Text(f"{comparison.different} payments would have been judged differently; the largest:", "bold"))
    for it in comparison.differences:
        money = str(Money(it.amount, it.currency))
        head = f"  {absolute(from_millis(it.at))}  order {it.order_id}  {money}, {it.truth}: "
        out.print(Text(head).append(f"{it.today} → {it.other}", "bold").append(f", {'; '.join(it.reasons)}", "dim"))


def _money(by_currency: dict[str, int]) -> str:
    return " + ".join(str(Money(amount, currency)) for currency, amount in sorted(by_currency.items()) if amount)


def _table(*titles: str) -> Table:
    table = Table(*titles, box=None, header_style="bold")
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    return table
