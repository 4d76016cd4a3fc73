"""A decision as it was recorded: its events, and the state it was made on. `original_commands` modules read it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.envelope import millis


@dataclass
class RecordedDecision:
    """Events that one command led to, with the state before them."""

    stream_id: str
    version: int
    """The version of its first event."""
    time: datetime
    actor: str
    causation_id: str
    state: Any
    """The state the decision was made on."""
    events: list[Any]
    has_old_schema: bool = False
    """An event was written with an older schema, so fields that were added since cannot be compared."""

    @property
    def now(self) -> int:
        """The command's own time in unix milliseconds; where no event kept it, the time of recording."""
        return next((event.at for event in self.events if hasattr(event, "at")), millis(self.time))
