"""A figure next to its reference, measured in the same run, and the table that shows them."""

import statistics
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from rich.table import Table

from infra.cli.render.console import out, print_json


@dataclass(frozen=True)
class Figure:
    name: str
    ours: float
    reference: float
    unit: str
    at_least: float | None = None
    """Limit of the ratio ours / reference."""
    at_most: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.reference if self.reference else float("inf")

    @property
    def holds(self) -> bool:
        return (self.at_least is None or self.ratio >= self.at_least) and (
            self.at_most is None or self.ratio <= self.at_most
        )


def show(figures: list[Figure], as_json: bool) -> bool:
    """Prints the figures, and returns whether all limits hold."""
    if as_json:
        print_json([asdict(figure) | {"ratio": figure.ratio, "holds": figure.holds} for figure in figures])
    else:
        table = Table("figure", "ours", "reference", "unit", "ratio", "limit", "", box=None, header_style="bold")
        for figure in figures:
            limit = f"≥ {figure.at_least}" if figure.at_least is not None else ""
            limit = f"≤ {figure.at_most}" if figure.at_most is not None else limit
            verdict = "[green]holds[/]" if figure.holds else "[red]missed[/]"
            table.add_row(
                figure.name,
                f"{figure.ours:,.4g}" if figure.ours < 100 else f"{figure.ours:,.0f}",
                f"{figure.reference:,.4g}" if figure.reference < 100 else f"{figure.reference:,.0f}",
                figure.unit,
                f"{figure.ratio:.2f}",
                limit,
                verdict if limit else figure.note,
            )
        out.print(table)
    return all(figure.holds for figure in figures)


async def side_by_side(
    ours: Callable[[], Awaitable[float]], reference: Callable[[], Awaitable[float]], rounds: int = 5
) -> tuple[float, float]:
    """Alternates the two, and returns the round with the median ratio, because noise affects both sides of a round."""
    measured = [(await ours(), await reference()) for _ in range(rounds)]
    ratio = statistics.median_low(a / b for a, b in measured)
    return next((a, b) for a, b in measured if a / b == ratio)
