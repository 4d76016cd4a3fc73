"""The sections of the report: what each reads from the lake, its plot, and the rows behind the plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from textwrap import fill
from typing import Any

from analytics.lake import LakeFiles
from analytics.query.ask import ask
from analytics.query.delays import Delay
from analytics.query.freshness import Freshness
from analytics.report import plots
from analytics.report.plots import Bar
from analytics.report.questions import PRODUCT_NAMES

NEEDED = tuple(f"gold.{name}" for name in ("sales_per_minute", "product_sales", "funnel", "abandoned_carts", "orders"))
STEPS = ("opened", "with_items", "checked_out", "placed", "reserved", "authorized", "confirmed")
BUCKETS = (("minute", timedelta(hours=3)), ("hour", timedelta(days=7)), ("day", timedelta.max))
"""The unit by which sales are added up, and the longest span for which it is used."""
TOP_PRODUCTS = 10
NOTHING_YET = "Nothing yet."


@dataclass(frozen=True)
class FixedVersions:
    """Answers SQL at versions that do not change while the report is written."""

    lake: LakeFiles
    versions: Mapping[str, int]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(ask(self.lake, sql, versions=self.versions).rows)


@dataclass(frozen=True)
class Section:
    title: str
    about: str
    plot: str = ""
    """An SVG, which goes into the page as it is."""
    note: str = ""
    """A sentence in place of a plot."""
    columns: Sequence[str] = ()
    rows: Sequence[tuple[Any, ...]] = ()


def main_currency(tables: FixedVersions, default: str) -> str:
    """Returns the currency of most orders, or the default where there are none."""
    found = tables.rows("SELECT mode(currency) FROM gold.orders")
    return str(found[0][0] or default)


def tiles(tables: FixedVersions, currency: str) -> dict[str, str]:
    """Returns the headline figures by their label."""
    [(net, orders)] = tables.rows(
        f"SELECT coalesce(sum(net_revenue), 0), coalesce(sum(orders), 0) FROM gold.sales_per_minute {_of(currency)}"
    )
    [(opened, confirmed)] = tables.rows("SELECT coalesce(sum(opened), 0), coalesce(sum(confirmed), 0) FROM gold.funnel")
    left = f"FROM gold.abandoned_carts {_of(currency)} AND NOT came_back AND NOT bought_later"
    [(value,)] = tables.rows(f"SELECT coalesce(sum(value), 0) {left}")
    figures = {
        f"{currency} sold, net": _money(net),
        "orders confirmed": f"{orders:,}",
        "of carts became orders": f"{100 * confirmed / (opened or 1):.0f} %",
        f"{currency} left in carts": _money(value),
    }
    if "gold.fraud_alerts" in tables.versions:
        figures["fraud alerts"] = f"{tables.rows('SELECT count(*) FROM gold.fraud_alerts')[0][0]:,}"
    return figures


def sales(tables: FixedVersions, currency: str) -> Section:
    title = "Sales"
    about = f"Confirmed orders in {currency}, and what was taken back when confirmed orders were cancelled."
    [(first, last)] = tables.rows(f"SELECT min(minute), max(minute) FROM gold.sales_per_minute {_of(currency)}")
    if first is None:
        return Section(title, about, note=NOTHING_YET)
    bucket = next(name for name, longest in BUCKETS if last - first <= longest)
    figures = "sum(orders), sum(revenue) / 100, -sum(cancelled_revenue) / 100"
    rows = tables.rows(
        f"SELECT date_trunc('{bucket}', minute) AS moment, {figures} FROM gold.sales_per_minute {_of(currency)} "
        "GROUP BY moment ORDER BY moment"
    )
    bars = {"sold": [row[2] for row in rows], "taken back": [row[3] for row in rows]}
    days = timedelta(**{f"{bucket}s": 1}) / timedelta(days=1)
    plot = plots.columns(title, about, [row[0] for row in rows], bars, days, f"{currency} per {bucket}")
    return Section(title, about, plot, columns=(bucket, "orders", "sold", "taken back"), rows=rows)


def funnel(tables: FixedVersions) -> Section:
    title, about = "From cart to order", "How far the opened carts came, all hours together."
    [counts] = tables.rows(f"SELECT {', '.join(f'coalesce(sum({step}), 0)' for step in STEPS)} FROM gold.funnel")
    if not counts[0]:
        return Section(title, about, note=NOTHING_YET)
    names = [step.replace("_", " ") for step in STEPS]
    shares = [f"{count:,}  ({100 * count / counts[0]:.0f} %)" for count in counts]
    plot = plots.rows(title, about, [Bar(*bar) for bar in zip(names, counts, shares, strict=True)])
    hours = tables.rows(
        f"SELECT hour, {', '.join(STEPS)}, 100 * conversion FROM gold.funnel ORDER BY hour DESC LIMIT 48"
    )
    return Section(title, about, plot, columns=("hour", *names, "% of carts"), rows=hours)


def products(tables: FixedVersions, currency: str) -> Section:
    title, about = "Products", f"Best sellers in {currency}, less what came back."
    rows = tables.rows(f"""
        WITH names AS ({PRODUCT_NAMES})
        SELECT sku, coalesce(name, sku), sum(units - returned_units),
               sum(revenue - returned_revenue) / 100 AS net, sum(carts)
        FROM gold.product_sales LEFT JOIN names USING (sku) {_of(currency)}
        GROUP BY sku, name HAVING sum(units) > 0 ORDER BY net DESC, sku LIMIT {TOP_PRODUCTS}""")
    if not rows:
        return Section(title, about, note=NOTHING_YET)
    bars = [Bar(_short(name), max(0.0, net), f"{net:,.2f}  ({pieces:,} sold)") for _, name, pieces, net, _ in rows]
    columns = ("SKU", "product", "pieces", "net", "carts it was in")
    return Section(title, about, plots.rows(title, about, bars), columns=columns, rows=rows)


def fraud(tables: FixedVersions) -> Section:
    title, about = "Fraud", "Customers and payment tokens that a rule found suspicious, by reason."
    if "gold.fraud_alerts" not in tables.versions:
        return Section(title, about, note=NOTHING_YET)
    rows = tables.rows("""
        SELECT reasons[1] AS why, score, count(DISTINCT (subject_kind, subject)) AS subjects, max(reached_at)
        FROM gold.fraud_alerts GROUP BY why, score ORDER BY score DESC, subjects DESC, why LIMIT 12""")
    if not rows:
        return Section(title, about, note="No alerts.")
    bars = [Bar(fill(why, 42), subjects, f"{subjects:,}  (score {score})") for why, score, subjects, _ in rows]
    plot = plots.rows(title, about, bars, plots.SECOND)
    return Section(title, about, plot, columns=("reason", "score", "subjects", "last"), rows=rows)


def freshness(fresh: Freshness, delays: Sequence[Delay]) -> Section:
    title, about = "Freshness", "How old events were when they could be read in silver, batch by batch."
    plot, note = "", NOTHING_YET
    if len(delays) == 1:
        [one] = delays
        note = f"One batch so far: its newest after {one.newest:.1f} s, its oldest after {one.oldest:.1f} s."
    elif delays:
        moments = [delay.visible.replace(tzinfo=None) for delay in delays]
        newest, oldest = [delay.newest for delay in delays], [delay.oldest for delay in delays]
        plot, note = plots.band(title, about, moments, newest, oldest, "seconds"), ""
    rows = [
        (t.name, t.rows, t.files, f"{t.bytes / 1e6:,.1f} MB", t.version, t.committed.replace(tzinfo=None))
        + ((t.behind.events, f"{t.behind.seconds:.0f} s") if t.behind else ("?", "?"))
        for t in fresh.tables
    ]
    columns = ("table", "rows", "files", "size", "version", "last commit", "events behind", "for")
    return Section(title, about, plot, note, columns, rows)


def _of(currency: str) -> str:
    literal = currency.replace("'", "''")
    return f"WHERE currency = '{literal}'"


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _short(text: str, length: int = 46) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
