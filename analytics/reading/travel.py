"""Versions of several tables that show the same moment: the same messages of Kafka have reached all of them.

Chosen by what the commits say. The times of the files, which delta-rs goes by, are those of the last copy of the lake.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from analytics.commits import Offsets, Version, covers, versions
from shared.errors import OperatorError
from shared.settings import Settings

PAGE = 64
SPARED = {"silver.quarantine"}
"""Gets a commit only when something is wrong with a message; without one, it has come as far as the others."""


class Standing(NamedTuple):
    version: int
    offsets: Offsets | None
    """What it had reached: of a compaction, that of the commit before it. None where no commit says so."""


def versions_at(settings: Settings, names: Iterable[str], moment: datetime) -> dict[str, int]:
    """The newest that had been committed by then, and with nothing in one table that another had not reached yet."""
    older = {name: _standings(settings, name, moment) for name in names}
    found = {name: next(standings) for name, standings in older.items()}
    while True:
        cut = least(standing.offsets for name, standing in found.items() if standing.offsets and name not in SPARED)
        ahead = [name for name, standing in found.items() if cut and not covers(cut, standing.offsets or {})]
        if not ahead:
            return {name: standing.version for name, standing in found.items()}
        found |= {name: next(older[name]) for name in ahead}


def least(reached: Iterable[Offsets]) -> Offsets:
    """What all have reached."""
    every = list(reached)
    places = {(topic, partition) for offsets in every for topic, parts in offsets.items() for partition in parts}
    cut: dict[str, dict[str, int]] = {}
    for topic, partition in places:
        cut.setdefault(topic, {})[partition] = min(o.get(topic, {}).get(partition, 0) for o in every)
    return cut


def _standings(settings: Settings, name: str, moment: datetime) -> Iterator[Standing]:
    """Newest first. The last one is followed by an error: nothing older is remembered."""
    waiting: list[int] = []
    oldest = None
    for version in _newest_first(settings, name):
        oldest = version
        if version.timestamp <= moment.timestamp() * 1000:
            waiting.append(version.number)
            if "offsets" in version.said:
                yield from (Standing(number, version.said["offsets"]) for number in waiting)
                waiting = []
    yield from (Standing(number, None) for number in waiting)
    begins = f"its history begins at {_time(oldest.timestamp / 1000)}" if oldest else "it has no history"
    raise OperatorError(f"{name} has no version that shows {_time(moment.timestamp())}: {begins}.")


def _time(unix: float) -> str:
    return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _newest_first(settings: Settings, name: str) -> Iterator[Version]:
    """In growing pages: a log may be long, and what is wanted is mostly near its end."""
    page, last = PAGE, None
    while True:
        history = list(versions(settings, name, page))
        for version in history:
            if last is None or version.number < last:
                last = version.number
                yield version
        if len(history) < page:
            return
        page *= 8
