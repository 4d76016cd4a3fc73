"""Progress of a long command: counts with rate and time left, and lines where there is no terminal."""

import pytest
from rich.spinner import Spinner
from rich.table import Table

from infra.cli.render import progress
from infra.cli.render.progress import Display
from infra.cli.render.values import size


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", clock)
    return clock


def states(display: Display) -> list[str]:
    table: Table = display.table(Spinner("dots"))
    return [str(state) for state in table.columns[2].cells]


def test_a_count_has_a_rate_and_the_time_left_once_there_is_something_to_measure(clock: Clock) -> None:
    display = Display()
    display.count("orders", "building", 0, 10_000)
    assert states(display) == ["building · 0 of 10,000"]
    clock.now += 2
    display.count("orders", "building", 4_000, 10_000)
    assert states(display) == ["building · 4,000 of 10,000 · 2,000/s · 3 s left"]


def test_a_count_without_a_total_has_no_end(clock: Clock) -> None:
    display = Display()
    display.count("events", "reading", 1)
    clock.now += 2
    display.count("events", "reading", 2_001)
    assert states(display) == ["reading · 2,001 · 1,000/s"]


def test_bytes_are_counted_in_their_own_unit(clock: Clock) -> None:
    display = Display()
    display.count("jars", "downloading", 500_000, 2_500_000, size)
    assert states(display) == ["downloading · 500 kB of 2.5 MB"]


def test_a_step_that_describes_itself_is_asked_at_each_refresh() -> None:
    seconds = iter(("1 s", "2 s"))
    display = Display()
    display.follow("shop", lambda: next(seconds))
    assert [states(display), states(display)] == [["1 s"], ["2 s"]]


def test_without_a_terminal_every_change_is_a_line_and_a_count_one_every_few_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.progress() as shown:
        shown.note("kafka", "waiting")
        shown.note("kafka", "starting")
        shown.count("events", "reading", 10)
        clock.now += progress.LINE_EVERY_SECONDS
        shown.count("events", "reading", 20)
        shown.note("kafka", "ready")
    lines = [line.split(maxsplit=2)[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["kafka starting", "events reading · 20 · 2/s", "kafka ready"]


def test_a_quiet_command_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress(quiet=True) as shown:
        shown.note("kafka", "starting")
    assert capsys.readouterr().err == ""
