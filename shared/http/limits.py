"""Limits the request rate of each caller with a token bucket in the memory of the process."""

import time

from shared.http.problems import Problem

MAX_CALLERS = 50_000


class RateLimit:
    """Allows `per_second` requests of one caller on average and twice as many at once; 0 sets no limit."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._burst = 2 * per_second
        self._buckets: dict[str, tuple[float, float]] = {}
        """The tokens left per caller, and when that was so."""

    def take(self, caller: str) -> None:
        if not self._rate:
            return
        now = time.monotonic()
        left, since = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            wait = (1 - left) / self._rate
            raise Problem(
                429, "too-many-requests", "Too many requests; slow down.", {"Retry-After": str(max(1, round(wait)))}
            )
        if len(self._buckets) >= MAX_CALLERS:
            self._buckets.clear()
        self._buckets[caller] = (left - 1, now)
