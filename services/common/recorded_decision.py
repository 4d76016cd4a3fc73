"""What is known of a decision that was made."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.envelope import millis


@dataclass
class Decision:
    stream_id: str
    version: int
    """Of the first event it led to."""
    time: datetime
    actor: str
    causation_id: str
    state: Any
    """That it was made on."""
    recorded: list[Any]
    """The events."""
    is_old: bool = False
    """An event of it was written by an older schema: what that one did not say cannot be compared."""

    @property
    def now(self) -> int:
        """As the command said; where no event kept it, as the clock said when they were recorded."""
        return next((event.at for event in self.recorded if hasattr(event, "at")), millis(self.time))
