"""Keeps frames that are used more than once: computed once, released together at the end of a block."""

from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, TypeVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame

T = TypeVar("T")


class FrameCache:
    """Frames and values that live until the end of a block."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []
        self._values: dict[Hashable, Any] = {}

    def keep(self, frame: DataFrame) -> DataFrame:
        """Returns the frame so that it is computed once, at its first use.

        Uses `localCheckpoint` and not `persist`, to cut off the plan: a persisted frame keeps it, Spark prints the
        plans of all that a plan is made of, and ten frames made of each other took a heap of a gigabyte.
        """
        self._frames.append(frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK))
        return self._frames[-1]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the value for a key, made at the first call."""
        if key not in self._values:
            self._values[key] = make()
        found: T = self._values[key]
        return found

    def __enter__(self) -> "FrameCache":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._frames:
            # PySpark cannot release a local checkpoint: `unpersist` releases only what `persist` has cached. The RDD
            # behind the frame's plan can. Tested, as this is not part of PySpark's API.
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)
