"""The parts of the report: what each asks of the lake, what it draws, and the rows behind it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from textwrap import fill
from typing import Any

from analytics.reading.asking import ask
from analytics.reading.delays import Delay
from analytics.reading.freshness import Freshness
from analytics.report import plots
from analytics.report.plots import Bar
from shared.settings import Settings

NEEDED = tuple(f"gold.{name}" for name in ("sales_per_minute", "product_sales", "funnel", "abandoned_carts", "orders"))
STEPS = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed")
BUCKETS = (("minute", timedelta(hours=3)), ("hour", timedelta(days=7)), ("day", timedelta.max))
"""How sales are added up, up to which span of them."""
TOP = 10
NOTHING = '<p class="dim">Nothing yet.</p>'


@dataclass(frozen=True)
class Lake:
    """At versions that do not change while it is asked."""

    settings: Settings
    versions: Mapping[str, int]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(ask(self.settings, sql, versions=self.versions).rows)


def main_currency(lake: Lake) -> str:
    """That of most orders."""
    found = lake.rows("SELECT mode(currency) FROM gold.orders")
    return str(found[0][0] or lake.settings.currency)


def tiles(lake: Lake, currency: str) -> str:
    [(net, orders)] = lake.rows(
        f"SELECT coalesce(sum(net_revenue), 0), coalesce(sum(orders), 0) FROM gold.sales_per_minute {_of(currency)}"
    )
    [(opened, confirmed)] = lake.rows("SELECT coalesce(sum(opened), 0), coalesce(sum(confirmed), 0) FROM gold.funnel")
    left = f"FROM gold.abandoned_carts {_of(currency)} AND NOT came_back AND NOT bought_later"
    [(value,)] = lake.rows(f"SELECT coalesce(sum(value), 0) {left}")
    figures = {
        f"{currency} sold, net": _money(net),
        "orders confirmed": f"{orders:,}",
        "of carts became orders": f"{100 * confirmed / (opened or 1):.0f} %",
        f"{currency} lies in carts": _money(value),
    }
    if "gold.fraud_alerts" in lake.versions:
        figures["fraud alerts"] = f"{lake.rows('SELECT count(*) FROM gold.fraud_alerts')[0][0]:,}"
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}</dd></div>" for name, figure in figures.items())


def sales(lake: Lake, currency: str) -> str:
    title, about = (
        "Sales",
        f"Confirmed orders in {currency}, and what was taken back when orders were cancelled after all.",
    )
    [(first, last)] = lake.rows(f"SELECT min(minute), max(minute) FROM gold.sales_per_minute {_of(currency)}")
    if first is None:
        return _section(title, about, NOTHING)
    bucket = next(name for name, longest in BUCKETS if last - first <= longest)
    figures = "sum(orders), sum(revenue) / 100, -sum(cancelled_revenue) / 100"
    rows = lake.rows(
        f"SELECT date_trunc('{bucket}', minute) AS moment, {figures} FROM gold.sales_per_minute {_of(currency)} "
        "GROUP BY moment ORDER BY moment"
    )
    bars = {"sold": [row[2] for row in rows], "taken back": [row[3] for row in rows]}
    days = timedelta(**{f"{bucket}s": 1}) / timedelta(days=1)
    plot = plots.columns(title, about, [row[0] for row in rows], bars, days, f"{currency} per {bucket}")
    return _section(title, about, plot, _table((bucket, "orders", "sold", "taken back"), rows))


def funnel(lake: Lake) -> str:
    title, about = "From cart to order", "How far the carts came that were opened, of all hours together."
    [counts] = lake.rows(f"SELECT {', '.join(f'coalesce(sum({step}), 0)' for step in STEPS)} FROM gold.funnel")
    if not counts[0]:
        return _section(title, about, NOTHING)
    names = [step.replace("_", " ") for step in STEPS]
    shares = [f"{count:,}  ({100 * count / counts[0]:.0f} %)" for count in counts]
    plot = plots.rows(title, about, [Bar(*bar) for bar in zip(names, counts, shares, strict=True)])
    hours = lake.rows(f"SELECT hour, {', '.join(STEPS)}, 100 * conversion FROM gold.funnel ORDER BY hour DESC LIMIT 48")
    return _section(title, about, plot, _table(("hour", *names, "% of carts"), hours))


def products(lake: Lake, currency: str) -> str:
    title, about = "Products", f"What sells best, in {currency}, less what came back."
    rows = lake.rows(f"""
        WITH names AS (
            SELECT line.sku, any_value(line.product_name) AS name
            FROM (SELECT unnest(lines) AS line FROM gold.orders) GROUP BY line.sku
        )
        SELECT sku, coalesce(name, sku), sum(units - returned_units),
               sum(revenue - returned_revenue) / 100 AS net, sum(carts)
        FROM gold.product_sales LEFT JOIN names USING (sku) {_of(currency)}
        GROUP BY sku, name HAVING sum(units) > 0 ORDER BY net DESC, sku LIMIT {TOP}""")
    if not rows:
        return _section(title, about, NOTHING)
    bars = [Bar(_short(name), max(0.0, net), f"{net:,.2f}  ({pieces:,} sold)") for _, name, pieces, net, _ in rows]
    plot = plots.rows(title, about, bars)
    return _section(title, about, plot, _table(("SKU", "product", "pieces", "net", "carts it was in"), rows))


def fraud(lake: Lake) -> str:
    title, about = "Fraud", "Customers and means of payment that a rule found suspicious, by what was found."
    if "gold.fraud_alerts" not in lake.versions:
        return _section(title, about, NOTHING)
    rows = lake.rows("""
        SELECT reasons[1] AS why, score, count(DISTINCT (subject_kind, subject)) AS subjects, max(reached_at)
        FROM gold.fraud_alerts GROUP BY why, score ORDER BY score DESC, subjects DESC, why LIMIT 12""")
    if not rows:
        return _section(title, about, '<p class="dim">No alerts.</p>')
    bars = [Bar(fill(why, 42), subjects, f"{subjects:,}  (score {score})") for why, score, subjects, _ in rows]
    plot = plots.rows(title, about, bars, plots.SECOND)
    return _section(title, about, plot, _table(("what was found", "score", "subjects", "last"), rows))


def freshness(fresh: Freshness, delays: Sequence[Delay]) -> str:
    title, about = "Freshness", "How long messages had been in Kafka when they could be read in silver, batch by batch."
    plot = NOTHING
    if len(delays) == 1:
        [one] = delays
        plot = f"<p>One batch so far: its newest after {one.newest:.1f} s, its oldest after {one.oldest:.1f} s.</p>"
    elif delays:
        moments = [delay.visible.replace(tzinfo=None) for delay in delays]
        newest, oldest = [delay.newest for delay in delays], [delay.oldest for delay in delays]
        plot = plots.band(title, about, moments, newest, oldest, "seconds")
    tables = [
        (t.name, t.rows, t.files, f"{t.bytes / 1e6:,.1f} MB", t.version, t.committed.replace(tzinfo=None))
        + ((t.behind.events, f"{t.behind.seconds:.0f} s") if t.behind else ("?", "?"))
        for t in fresh.tables
    ]
    names = ("table", "rows", "files", "size", "version", "last commit", "events behind", "for")
    return _section(title, about, plot, _table(names, tables))


def _of(currency: str) -> str:
    literal = currency.replace("'", "''")
    return f"WHERE currency = '{literal}'"


def _section(title: str, about: str, plot: str, table: str = "") -> str:
    behind = f"<details><summary>The numbers</summary>{table}</details>" if table else ""
    return f"<section><h2>{escape(title)}</h2><p class='dim'>{escape(about)}</p>{plot}{behind}</section>"


def _table(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: Any) -> str:
    match value:
        case float():
            return f"<td class='n'>{value:,.2f}</td>"
        case int():
            return f"<td class='n'>{value:,}</td>"
        case datetime():
            return f"<td>{value:%Y-%m-%d %H:%M:%S}</td>"
        case _:
            return f"<td>{escape('' if value is None else str(value))}</td>"


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _short(text: str, length: int = 46) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
