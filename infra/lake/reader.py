"""The lake as `till verify` reads it, without Spark: how far each table is, and rows by SQL."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.settings import Settings


class LakeReader:
    def __init__(self, settings: Settings) -> None:
        from analytics.lake import LakeFiles

        self._lake = LakeFiles(settings)

    def reached(self, table: str) -> Mapping[str, Mapping[str, int]] | None:
        from analytics.log.progress import last_ingested

        commit = last_ingested(self._lake, table)
        return commit.offsets if commit else None

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        from analytics.query.ask import ask

        return ask(self._lake, sql).rows


def open_lake_reader(settings: Settings) -> LakeReader | None:
    """Opens the lake if there is one. Without one, its packages need not be installed."""
    if "://" not in settings.lake and not Path(settings.lake).is_dir():
        return None
    return LakeReader(settings)
