"""A cut: a position in Kafka, and the versions of silver's tables that have all events before it and none after it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from analytics.log.offsets import Offsets


@dataclass(frozen=True)
class Cut:
    silver: Mapping[str, int]
    """The version of each silver table, by name without the layer."""
    generation: str
    batch: int
    offsets: Offsets
    """The first messages that are not part of it."""

    def fields(self) -> dict[str, Any]:
        """Returns the part of a commit's metadata that describes the cut."""
        return asdict(self)
