"""Draws plots as SVG for a page: text stays text, the page chooses the colours, nothing is fetched from elsewhere."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from io import StringIO
from itertools import count
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

# matplotlib accepts no CSS variables. It draws with these colours, which nothing else has, and `_svg` replaces them by
# the variables of the page, so that a plot follows its light or dark theme.
INK, FAINT, MAIN, SECOND = "#010101", "#020202", "#030303", "#040404"
CSS_VARIABLES = {INK: "--ink", FAINT: "--faint", MAIN: "--main", SECOND: "--second"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
}
WIDTH = 9.0
FEWEST_COLUMNS = 12
"""Columns that a time axis has room for, so that a single one does not fill the plot."""

_names = count(1)


class Bar(NamedTuple):
    name: str
    value: float
    label: str
    """Text at its end."""


@matplotlib.rc_context(STYLE)
def columns(
    title: str, about: str, moments: Sequence[datetime], bars: Mapping[str, Sequence[float]], days: float, unit: str
) -> str:
    """Draws bars over time, each `days` wide. Values of the second kind are negative and hang down."""
    figure, axes = _drawing(3.2)
    for colour, (name, values) in zip((MAIN, SECOND), bars.items(), strict=False):
        axes.bar(moments, values, width=days * 0.9, align="edge", color=colour, label=name)  # type: ignore[arg-type]
    last = max(moments[-1] + timedelta(days=days), moments[0] + timedelta(days=FEWEST_COLUMNS * days))
    axes.set_xlim(moments[0] - timedelta(days=days / 2), last + timedelta(days=days / 2))  # type: ignore[arg-type]
    axes.grid(False, axis="x")
    axes.set_ylabel(unit)
    _time_axis(axes)
    _thousands(axes)
    if len(bars) > 1:
        axes.legend(loc="upper left", ncols=2, bbox_to_anchor=(0, 1.12))
    return _svg(figure, title, about)


@matplotlib.rc_context(STYLE)
def rows(title: str, about: str, bars: Sequence[Bar], colour: str = MAIN) -> str:
    """Draws horizontal bars, the first on top."""
    figure, axes = _drawing(0.6 + 0.36 * len(bars))
    drawn = axes.barh(range(len(bars)), [bar.value for bar in bars], height=0.66, color=colour)
    axes.bar_label(drawn, labels=[bar.label for bar in bars], padding=6, color=INK)
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.set_xlim(0, max(bar.value for bar in bars) * 1.3 or 1)
    axes.invert_yaxis()
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    return _svg(figure, title, about)


@matplotlib.rc_context(STYLE)
def band(
    title: str, about: str, moments: Sequence[datetime], low: Sequence[float], high: Sequence[float], unit: str
) -> str:
    """Draws the area between two lines over time."""
    figure, axes = _drawing(2.8)
    axes.fill_between(moments, low, high, color=MAIN, alpha=0.25, linewidth=0)  # type: ignore[arg-type]
    axes.plot(moments, high, color=MAIN, linewidth=1.6, label="oldest event of a batch")  # type: ignore[arg-type]
    axes.plot(moments, low, color=SECOND, linewidth=1.6, label="newest event of a batch")  # type: ignore[arg-type]
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", ncols=2, bbox_to_anchor=(0, 1.16))
    _time_axis(axes)
    return _svg(figure, title, about)


def _drawing(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _time_axis(axes: Axes) -> None:
    locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _thousands(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _svg(figure: Figure, title: str, about: str) -> str:
    """Returns the figure as an SVG element that fits into a page next to others and is described to screen readers."""
    name = f"plot{next(_names)}"
    written = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = svg.replace("font-family: 'DejaVu Sans'; ", "")  # the text was measured with it; the page's font is narrower
    for stand_in, variable in CSS_VARIABLES.items():
        svg = svg.replace(stand_in, f"var({variable})")
    # The ids of matplotlib's groups repeat in every plot of the page. Nothing refers to them.
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    described = f'<title id="{name}t">{escape(title)}</title><desc id="{name}d">{escape(about)}</desc>'
    opening = f'<svg role="img" aria-labelledby="{name}t {name}d"'
    return re.sub(r"<svg([^>]*)>", lambda found: f"{opening}{found[1]}>{described}", svg, count=1)
