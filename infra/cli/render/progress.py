"""Progress of a long command: a live list of its steps on a terminal, a line per step elsewhere.

It is printed to standard error, so that standard output has nothing but the result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import err
from infra.cli.render.moments import span

SETTLED = ("ready", "already running", "done")
RATE_AFTER_SECONDS = 1.0
"""Before that, a rate would be a guess."""
LINE_EVERY_SECONDS = 5.0

Unit = Callable[[int], str]


class Display:
    """The steps of a command and the state of each, as a table that is drawn while the command runs."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._steps: dict[str, tuple[Callable[[], str], float]] = {}
        self._counted_since: dict[str, tuple[float, int]] = {}

    def note(self, name: str, state: str) -> None:
        """Sets the state of a step. "ready" and "done" (or "done: ...") settle it."""
        self._steps[name] = (lambda: state, monotonic() - self._began)

    def count(self, name: str, phase: str, done: int, total: int = 0, unit: Unit = "{:,}".format) -> None:
        """Sets how much of a step is done, with its rate and, if a total is given, the time left."""
        began, first = self._counted_since.setdefault(f"{name} {phase}", (monotonic(), done))
        seconds, rate = monotonic() - began, 0.0
        parts = [phase]
        if done or total:
            parts.append(f"{unit(done)} of {unit(total)}" if total else unit(done))
        if seconds > RATE_AFTER_SECONDS and done > first:
            rate = (done - first) / seconds
            parts.append(f"{unit(int(rate))}/s")
        if rate and total > done:
            parts.append(f"{span((total - done) / rate)} left")
        self.update(name, " · ".join(parts))

    def update(self, name: str, state: str) -> None:
        """Sets the state of a step whose state changes often."""
        self.follow(name, lambda: state)

    def follow(self, name: str, describe: Callable[[], str]) -> None:
        """Shows what `describe` returns, whenever the display is refreshed."""
        self._steps[name] = (describe, monotonic() - self._began)

    def table(self, spinner: Spinner) -> Table:
        table = Table(box=None, show_header=False)
        for name, (describe, after) in list(self._steps.items()):
            state = describe()
            settled = _is_settled(state)
            mark = Text("✓", "green") if settled else spinner
            table.add_row(mark, name, Text(state, "default" if settled else "dim"), f"{after:.1f} s" if settled else "")
        return table


class _Lines(Display):
    """Prints a line for each change of a step, and one every few seconds for a step that changes often."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = monotonic()

    def note(self, name: str, state: str) -> None:
        super().note(name, state)
        if state != "waiting":
            self._print(name, state)

    def update(self, name: str, state: str) -> None:
        if monotonic() - self._printed >= LINE_EVERY_SECONDS:
            self._print(name, state)

    def _print(self, name: str, state: str) -> None:
        self._printed = monotonic()
        err.print(Text(f"{self._printed - self._began:6.1f} s  {name} {state}"))


def _is_settled(state: str) -> bool:
    return state in SETTLED or state.startswith("done: ")


@contextmanager
def progress(quiet: bool = False) -> Iterator[Display]:
    """Shows the progress of the block; with `quiet`, nothing."""
    if quiet:
        yield Display()
    elif not err.is_terminal:
        yield _Lines()
    else:
        shown, spinner = Display(), Spinner("dots")
        with Live(get_renderable=lambda: shown.table(spinner), console=err, refresh_per_second=10, transient=True):
            yield shown
