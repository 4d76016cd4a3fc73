"""A circuit breaker: spares a server that keeps failing, and finds out with one call when it is back.

Closed: calls pass. After some failures in a row it is open: calls fail at once. After a pause it is half-open: exactly
one call is let through, whose result closes the circuit or opens it again; calls meanwhile fail at once. A success
closes the circuit even if its call was made before the circuit opened.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal


class CircuitOpen(Exception):
    """The call was not made."""


class CircuitBreaker:
    """Counts the failures in a row of one server's calls, and decides which calls are made."""

    def __init__(self, failures_to_open: int, open_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures_to_open = failures_to_open
        self._open_seconds = open_seconds
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0
        self._is_trying = False

    @property
    def state(self) -> Literal["closed", "open", "half-open"]:
        if self._failures < self._failures_to_open:
            return "closed"
        return "open" if self._clock() < self._open_until else "half-open"

    @contextmanager
    def call(self) -> Iterator[None]:
        """Surrounds a call: an exception in the block is a failure, its normal end a success.

        A call that is cancelled is neither: it has shown nothing about the server. Raises CircuitOpen, without running
        the block, while no call may be made.
        """
        is_trial = self.state == "half-open"
        if self.state == "open" or (is_trial and self._is_trying):
            raise CircuitOpen
        self._is_trying = self._is_trying or is_trial
        try:
            yield
        except Exception:  # not BaseException, which includes CancelledError
            self._failures += 1
            self._open_until = self._clock() + self._open_seconds
            raise
        else:
            self._failures = 0
        finally:
            if is_trial:
                self._is_trying = False
