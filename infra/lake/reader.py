"""The lake as the checks of the services may ask it: how far each table is, and rows in SQL. Without Spark."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.settings import Settings


class LakeReader:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def reached(self, table: str) -> Mapping[str, Mapping[str, int]] | None:
        from analytics.commits import ingested

        commit = ingested(self._settings, table)
        return commit.offsets if commit else None

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        from analytics.reading.asking import ask

        return ask(self._settings, sql).rows


def open_lake(settings: Settings) -> LakeReader | None:
    """None where there is none: then its packages need not be here either."""
    if "://" not in settings.lake and not Path(settings.lake).is_dir():
        return None
    return LakeReader(settings)
