"""The Delta log of one table, newest version first, with the lake's own metadata. Reads it without Spark."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from analytics.log.commits import Commit, from_metadata

C = TypeVar("C", bound=Commit)

WINDOWS = (32, 512, 8192, None)
"""Numbers of commits to fetch in turn: the wanted one is mostly among the newest, and a log may be long."""


@dataclass(frozen=True)
class Version:
    number: int
    timestamp: int
    """Unix milliseconds, by the clock of the writer."""
    commit: Commit | None
    """The lake's metadata. Compactions, comments and the creation of a table have none."""
    rows: int | None = None
    """Number of rows written, where the commit records it."""


@dataclass(frozen=True)
class CommitSpan(Generic[C]):
    """A commit with metadata, and all versions that show its rows: its own, and the compactions after it."""

    commit: C
    versions: tuple[Version, ...]
    """Newest first; the last one carries the commit."""

    @property
    def version(self) -> int:
        """Number of the version that carries the commit."""
        return self.versions[-1].number

    @property
    def latest(self) -> int:
        """Number of the newest version that still shows the rows of the commit."""
        return self.versions[0].number

    @property
    def timestamp(self) -> int:
        return self.versions[-1].timestamp


class TableLog:
    """Reads the log of the table at a path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def versions(self, limit: int | None = None) -> Iterator[Version]:
        """Yields the versions, newest first, and fetches no more of the log than the caller consumes.

        A table that does not exist has none.
        """
        try:
            table = DeltaTable(self._path)
        except TableNotFoundError:
            return
        seen = 0
        for window in [limit] if limit else WINDOWS:
            entries = table.history(window)
            yield from map(_version, entries[seen:])
            seen = len(entries)
            if window is None or seen < window:
                return

    def spans(self, kind: type[C], limit: int | None = None) -> Iterator[CommitSpan[C]]:
        """Yields the commits of one kind, newest first. Other versions belong to the span of the commit before them."""
        later: list[Version] = []
        for version in self.versions(limit):
            later.append(version)
            if isinstance(version.commit, kind):
                yield CommitSpan(version.commit, tuple(later))
                later = []

    def newest(self, kind: type[C], where: Callable[[C], bool] = lambda _commit: True) -> CommitSpan[C] | None:
        """Returns the newest commit of a kind that satisfies a condition."""
        return next((span for span in self.spans(kind) if where(span.commit)), None)


def _version(entry: Mapping[str, Any]) -> Version:
    written = entry.get("operationMetrics", {}).get("numOutputRows")
    rows = None if written is None else int(written)
    return Version(entry["version"], entry["timestamp"], from_metadata(entry.get("userMetadata")), rows)
