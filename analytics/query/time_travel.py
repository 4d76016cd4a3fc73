"""Chooses versions of several tables that show the same moment: the same messages of Kafka have reached all of them.

Goes by the timestamp in the commits. delta-rs goes by the modification time of files, which changes with every copy.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from analytics.lake import LakeFiles
from analytics.log.commits import ProgressCommit
from analytics.log.offsets import Offsets, common, covers
from shared.errors import OperatorError

RARELY_WRITTEN = {"silver.quarantine"}
"""Tables that get a commit only when a message is invalid. Without one, they have come as far as the others."""


class _Candidate(NamedTuple):
    version: int
    offsets: Offsets | None
    """Offsets that the table had reached; None where no commit records them."""


def versions_at(lake: LakeFiles, names: Iterable[str], moment: datetime) -> dict[str, int]:
    """Returns the newest versions that were committed by then and have nothing that another had not reached yet."""
    older = {name: _candidates(lake, name, moment) for name in names}
    found = {name: next(candidates) for name, candidates in older.items()}
    while True:
        reached = [it.offsets for name, it in found.items() if it.offsets and name not in RARELY_WRITTEN]
        cut = common(reached)
        ahead = [name for name, candidate in found.items() if cut and not covers(cut, candidate.offsets or {})]
        if not ahead:
            return {name: candidate.version for name, candidate in found.items()}
        found |= {name: next(older[name]) for name in ahead}


def _candidates(lake: LakeFiles, name: str, moment: datetime) -> Iterator[_Candidate]:
    """Yields the versions up to a moment, newest first. After the last one it raises: the history ends there."""
    until = moment.timestamp() * 1000
    oldest_commit = None
    for span in lake.log(name).spans(ProgressCommit):
        oldest_commit = span.version
        if version := next((version for version in span.versions if version.timestamp <= until), None):
            yield _Candidate(version.number, span.commit.reached)
    oldest = None
    for oldest in lake.log(name).versions():
        if (oldest_commit is None or oldest.number < oldest_commit) and oldest.timestamp <= until:
            yield _Candidate(oldest.number, None)
    begins = f"its history begins at {_time(oldest.timestamp / 1000)}" if oldest else "it has no history"
    raise OperatorError(f"{name} has no version that shows {_time(moment.timestamp())}: {begins}.")


def _time(unix: float) -> str:
    return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M:%S} UTC"
