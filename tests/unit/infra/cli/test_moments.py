"""Moments on the command line: which are accepted, which are refused and why, and how they are printed."""

from datetime import UTC, datetime, timedelta

import click
import pytest
from click.testing import CliRunner, Result

from infra.cli.render.moments import MOMENT, both, parse_moment, span

NOW = datetime(2026, 11, 16, 7, 47, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("-30s", timedelta(seconds=30)),
        ("-5m", timedelta(minutes=5)),
        ("-2h", timedelta(hours=2)),
        ("-1d", timedelta(days=1)),
        ("-1h30m", timedelta(minutes=90)),
        ("2026-11-16T07:42:21Z", timedelta(minutes=5)),
        ("2026-11-16t07:42:21z", timedelta(minutes=5)),
        ("2026-11-16 08:42:21.000+01:00", timedelta(minutes=5)),
    ],
)
def test_a_moment_is_parsed(text: str, before: timedelta) -> None:
    assert parse_moment(text, NOW) == NOW - before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday", "is not a moment. Write it like"),
        ("-5", "is not a moment. Write it like"),
        ("5m", "is not a moment. Write it like"),
        ("2026-11-16", "is not a moment. Write it like"),
        ("2026-11-16T07:42:21", "has no time zone"),
        ("2026-13-16T07:42:21Z", "month must be in 1..12"),
        ("0001-01-01T00:00:00+01:00", "out of range"),
        ("-99999999999999d", "before the calendar begins"),
    ],
)
def test_text_that_is_no_moment_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_moment(text, NOW)


@click.command()
@click.option("--at", type=MOMENT)
def shown(at: datetime) -> None:
    click.echo(at.isoformat())


def run(text: str) -> Result:
    return CliRunner().invoke(shown, ["--at", text])


def test_an_option_takes_both_forms_and_gives_utc() -> None:
    assert run("2020-02-29T12:00:00+02:00").output == "2020-02-29T10:00:00+00:00\n"
    moment = datetime.fromisoformat(run("-5m").output.strip())
    assert timedelta(minutes=5) <= datetime.now(UTC) - moment < timedelta(minutes=6)


def test_the_future_is_bad_usage() -> None:
    ran = run("2999-01-01T00:00:00Z")
    assert ran.exit_code == 2
    assert "is in the future: it is 20" in ran.output


def test_a_moment_is_printed_absolutely_and_relatively() -> None:
    assert both(NOW - timedelta(seconds=200), NOW) == "2026-11-16 07:44:01 UTC, 3 min ago"
    assert both(NOW + timedelta(seconds=90), NOW) == "2026-11-16 07:48:51 UTC, in 1 min"
    assert [span(s) for s in (0.4, 59, 3600, 200_000)] == ["0 s", "59 s", "1 h", "2 d"]
