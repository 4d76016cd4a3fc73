"""What `till up` shows while servers start: a live list on a terminal, a line per step elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from infra.cli.console import err

SETTLED = {"ready", "already running", "done"}


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """To standard error, so that the result alone is on standard output."""
    began = monotonic()
    states: dict[str, tuple[str, float]] = {}

    def note(name: str, state: str) -> None:
        states[name] = (state, monotonic() - began)

    if quiet:
        yield note
    elif err.is_terminal:
        spinner = Spinner("dots")
        with Live(get_renderable=lambda: _list(states, spinner), console=err, refresh_per_second=12, transient=True):
            yield note
    else:

        def line(name: str, state: str) -> None:
            note(name, state)
            if state != "waiting":
                err.print(Text(f"{states[name][1]:6.1f} s  {name} {state}"))

        yield line


def _list(states: dict[str, tuple[str, float]], spinner: Spinner) -> Table:
    table = Table(box=None, show_header=False)
    for name, (state, after) in states.items():
        settled = state in SETTLED or state.startswith("done: ")
        mark = Text("✓", "green") if settled else spinner
        table.add_row(mark, name, Text(state, "default" if settled else "dim"), f"{after:.1f} s" if settled else "")
    return table
