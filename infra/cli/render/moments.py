"""Moments on the command line: read as RFC 3339 or as an age such as -5m, printed as both."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

RFC_3339 = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2}(?:\.\d+)?)([Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
AGE = re.compile(r"-((?:\d+[smhd])+)", re.ASCII)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
EXAMPLES = "2026-11-16T07:44:21Z, or -5m, -2h, -1d"
FORMATS = "RFC 3339, or an age such as -5m"
"""The formats of a moment, for help texts."""


class Moment(click.ParamType[datetime, str]):
    """Parses an aware datetime in UTC. A moment in the future is refused, because nothing has happened then."""

    name = "T"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        now = datetime.now(UTC)
        try:
            moment = parse_moment(value, now)
        except ValueError as wrong:
            self.fail(f"{value!r} {wrong}", param, ctx)
        if moment > now:
            self.fail(f"{value!r} is in the future: it is {absolute(now)} now.", param, ctx)
        return moment


MOMENT = Moment()


def parse_moment(text: str, now: datetime) -> datetime:
    """Parses a moment. The message of a ValueError completes a sentence that begins with the text."""
    if age := AGE.fullmatch(text.strip()):
        return _before(now, age[1])
    if not (parts := RFC_3339.fullmatch(text.strip())):
        raise ValueError(f"is not a moment. Write it like {EXAMPLES}.")
    day, time, offset = parts.groups()
    if not offset:
        raise ValueError("has no time zone: end it with Z for UTC, or with an offset like +01:00.")
    try:
        return datetime.fromisoformat(f"{day}T{time}{offset.upper()}").astimezone(UTC)
    except (ValueError, OverflowError) as impossible:
        raise ValueError(f"is not a moment: {impossible}.") from impossible


def absolute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def precise(moment: datetime) -> str:
    """Formats a moment to the millisecond, because services answer each other within a few."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Formats an age in its largest unit, rounded down: "3 min ago"."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return f"in {span(-seconds)}" if seconds <= -1 else f"{span(seconds)} ago"


def both(moment: datetime, now: datetime | None = None) -> str:
    """Formats a moment with its age: 2026-11-16 07:44:21 UTC, 3 min ago."""
    return f"{absolute(moment)}, {ago(moment, now)}"


def span(seconds: float) -> str:
    """Formats a duration in its largest unit, rounded down."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _before(now: datetime, age: str) -> datetime:
    given = re.findall(r"(\d+)([smhd])", age)
    try:
        return now - timedelta(**{UNITS[unit]: sum(int(n) for n, u in given if u == unit) for _, unit in given})
    except OverflowError:
        raise ValueError("is before the calendar begins.") from None
