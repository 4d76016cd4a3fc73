"""How far long work is: done, rate and time left, on a terminal only. To standard error: the result is on the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Group
from rich.live import Live
from rich.text import Text

from infra.cli.console import err
from infra.cli.moments import span

ENOUGH_SECONDS = 1.0
"""Before that, a rate is a guess."""


class Pace:
    def __init__(self) -> None:
        self._lines: dict[str, Text] = {}
        self._began: dict[str, tuple[float, int]] = {}

    def note(self, name: str, phase: str, done: int = 0, total: int = 0) -> None:
        """So much of so much is done in this phase of it. Without a total, only that it is at it."""
        began, first = self._began.setdefault(f"{name} {phase}", (monotonic(), done))
        seconds, rate = monotonic() - began, 0.0
        words = [f"{name}: {phase}"]
        if done:
            words.append(f"{done:,} of {total:,}" if total else f"{done:,}")
        if seconds > ENOUGH_SECONDS and done > first:
            rate = (done - first) / seconds
            words.append(f"{rate:,.0f}/s")
        if rate and total > done:
            words.append(f"{span((total - done) / rate)} left")
        self._lines[name] = Text(" · ".join(words))

    def done(self, name: str) -> None:
        self._lines.pop(name, None)

    def __rich__(self) -> Group:
        return Group(*self._lines.values())


@contextmanager
def pacing(quiet: bool = False) -> Iterator[Pace]:
    pace = Pace()
    if quiet or not err.is_terminal:
        yield pace
    else:
        with Live(get_renderable=lambda: pace, console=err, refresh_per_second=8, transient=True):
            yield pace
