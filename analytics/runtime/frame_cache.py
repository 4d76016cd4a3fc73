"""Frames that are used more than once: computed once, given back when all is over."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame

T = TypeVar("T")


class Keeping:
    def __init__(self) -> None:
        self._frames: list[DataFrame] = []
        self._known: dict[object, Any] = {}

    def keep(self, frame: DataFrame) -> DataFrame:
        """Without its plan. A cached frame keeps it, and Spark prints the plans of all that a plan is made of, over and
        over: ten frames made of each other took a heap of a gigabyte.
        """
        self._frames.append(frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def once(self, what: object, make: Callable[[], T]) -> T:
        if what not in self._known:
            self._known[what] = make()
        found: T = self._known[what]
        return found

    def __enter__(self) -> "Keeping":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._frames:
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)
