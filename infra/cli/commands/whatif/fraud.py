"""`till whatif fraud`: the payments of the past under other rules of suspicion, beside today's."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from infra.cli.lake_work import opened
from infra.cli.moments import MOMENT, absolute
from infra.cli.progress import progress
from infra.cli.refusals import BadInput
from shared.envelope import from_millis, rfc3339
from shared.errors import OperatorError
from shared.money import Money
from shared.settings import Settings

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
@click.option("--rules", "file", required=True, metavar="FILE", help="In the form of analytics/fraud/rules.toml.")
@click.option("--from", "start", type=MOMENT, help="Payments from then on. Default: from the first.")
@click.option("--to", "end", type=MOMENT, help="Payments before then. Default: to the last.")
@json_option
def fraud(file: str, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """Judge the payments in the lake by the rules in FILE, and by today's: caught, missed, wrongly held, and the money.

    What was fraud is known of simulated shoppers (TILL_HOME/simulations). Of others, what support rejected was fraud;
    what support approved, or what was paid and kept, was honest; the rest is not known. Windows reach back before
    --from. All that people did is taken as it was, also what they did after a payment that would have been refused.
    "Kept in fact" is what was taken for such payments and not given back: of fraud that is caught, what it would save.

    The lake is as fresh as its last `till lake run`.

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
    from analytics.commits import versions
    from analytics.fraud.rules import load_rules
    from infra.shoppers.labels import FRAUD, visits_of_orders

    if next(versions(settings, PAYMENTS, 1), None) is None:
        raise OperatorError("There is no lake yet.", "Fill it with: till lake run")
    ledgers = sorted((settings.home / "simulations").glob("*.jsonl"))
    labels = {order: visit in FRAUD for order, visit in visits_of_orders(ledgers).items()}
    with progress(quiet) as watch, opened(settings, watch) as spark:
        from analytics.fraud.whatif import Span, compare
        from analytics.tables import read

        watch("payments", "judging them twice")
        found = compare(read(spark, settings, PAYMENTS), load_rules(), other, labels, Span(start, end))
        watch("payments", "done")
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
    """By currency, in minor units: what was asked for, and what of it was taken and kept in fact."""
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
        out.print(Text("No payment would have gone otherwise.", "dim"))
        return
    out.print(Text(f"{comparison.different} payments would have gone otherwise; the largest:", "bold"))
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
