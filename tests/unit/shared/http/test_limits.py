"""The rate limit: each caller has a budget of its own, and learns when to come back."""

import pytest

from shared.http.limits import RateLimit
from shared.http.problems import Problem


def test_a_caller_over_the_limit_is_told_when_to_come_back() -> None:
    limit = RateLimit(per_second=1)
    for _ in range(2):
        limit.take("ann")
    with pytest.raises(Problem) as refused:
        limit.take("ann")
    assert refused.value.status == 429
    assert refused.value.headers is not None
    assert int(refused.value.headers["Retry-After"]) >= 1


def test_the_limit_of_one_caller_is_not_used_up_by_another() -> None:
    limit = RateLimit(per_second=1)
    for _ in range(2):
        limit.take("ann")
    limit.take("bob")


def test_without_a_limit_no_caller_is_refused() -> None:
    limit = RateLimit(per_second=0)
    for _ in range(10_000):
        limit.take("ann")
