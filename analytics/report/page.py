"""Writes the report: one HTML page with figures, plots, and the numbers behind each. It opens without a network."""

from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from analytics.lake import LakeFiles
from analytics.query.delays import measure_delays
from analytics.query.freshness import Freshness, greatest_lag
from analytics.report.sections import (
    NEEDED,
    FixedVersions,
    fraud,
    freshness,
    funnel,
    main_currency,
    products,
    sales,
    tiles,
)


def render_report(lake: LakeFiles, fresh: Freshness, now: datetime, currency: str) -> str:
    """Renders the page from the newest gold. `currency` is shown where there are no orders yet."""
    tables = FixedVersions(lake, {table.name: table.version for table in fresh.tables})
    if missing := [name for name in NEEDED if name not in tables.versions]:
        raise lake.missing(missing[0])
    currency = main_currency(tables, default=currency)
    sections = [sales(tables, currency), funnel(tables), products(tables, currency), fraud(tables)]
    sections.append(freshness(fresh, measure_delays(lake)))
    about = f"Written {now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC by till lake report. {_lag(fresh)} Times are UTC."
    return _template().render(about=about, tiles=tiles(tables, currency), sections=sections)


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("analytics.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.tests["figure"] = lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return environment.get_template("page.html")


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:,.2f}"
        case int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case _:
            return str(value)


def _lag(fresh: Freshness) -> str:
    gold = greatest_lag(fresh.tables, "gold")
    if gold is None:
        return f"{fresh.kafka or 'How far it is behind Kafka is not known'}."
    if not gold.events:
        return "It has all that is in Kafka."
    return f"{gold.events:,} newer events, the oldest {gold.seconds:.0f} s old, were not in it yet."
