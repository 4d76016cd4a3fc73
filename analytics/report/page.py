"""One page on the shop, from gold: figures, plots, and the numbers behind each. It needs no network to be read."""

from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template

from analytics.reading.delays import delays
from analytics.reading.freshness import Freshness, furthest_behind
from analytics.report.sections import NEEDED, Lake, fraud, freshness, funnel, main_currency, products, sales, tiles
from shared.errors import OperatorError
from shared.settings import Settings


def page(settings: Settings, fresh: Freshness, now: datetime) -> str:
    lake = Lake(settings, {table.name: table.version for table in fresh.tables})
    if missing := [name for name in NEEDED if name not in lake.versions]:
        raise OperatorError(f"There is no {missing[0]} yet in {settings.lake}.", "It is made by: till lake run")
    currency = main_currency(lake)
    sections = [sales(lake, currency), funnel(lake), products(lake, currency), fraud(lake)]
    sections.append(freshness(fresh, delays(settings)))
    about = f"Written {now.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC by till lake report. {_behind(fresh)} Times are UTC."
    return Template(files("analytics.report").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        about=escape(about), tiles=tiles(lake, currency), sections="\n".join(sections)
    )


def _behind(fresh: Freshness) -> str:
    gold = furthest_behind(fresh.tables, "gold")
    if gold is None:
        return f"{fresh.kafka or 'How far it is behind Kafka is not known'}."
    if not gold.events:
        return "It has all that is in Kafka."
    return f"{gold.events:,} newer events, the oldest {gold.seconds:.0f} s old, were not in it yet."
