"""The circuit breaker in front of the payment provider: closed, open, half-open."""

import asyncio
from contextlib import suppress

import pytest

from services.payment.circuit_breaker import CircuitBreaker, CircuitOpen


class Failure(Exception):
    pass


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures_to_open=3, open_seconds=2.0, clock=clock)


def state(breaker: CircuitBreaker) -> str:
    return breaker.state


def fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        with suppress(Failure), breaker.call():
            raise Failure


def succeed(breaker: CircuitBreaker) -> None:
    with breaker.call():
        pass


def test_a_few_failures_leave_the_circuit_closed(breaker: CircuitBreaker) -> None:
    fail(breaker, times=2)
    assert state(breaker) == "closed"
    succeed(breaker)


def test_only_failures_in_a_row_open_the_circuit(breaker: CircuitBreaker) -> None:
    fail(breaker, times=2)
    succeed(breaker)
    fail(breaker, times=2)
    assert state(breaker) == "closed"


def test_an_open_circuit_fails_calls_without_making_them(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, times=3)
    clock.seconds += 1.9
    assert state(breaker) == "open"
    with pytest.raises(CircuitOpen), breaker.call():
        raise AssertionError("the call was made")


def test_a_half_open_circuit_lets_exactly_one_call_through(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, times=3)
    clock.seconds += 2
    assert state(breaker) == "half-open"
    with breaker.call():
        for _ in range(3):
            with pytest.raises(CircuitOpen), breaker.call():
                raise AssertionError("a second call was made")
    assert state(breaker) == "closed"


def test_a_failed_trial_opens_the_circuit_for_another_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, times=3)
    clock.seconds += 2
    fail(breaker)
    assert state(breaker) == "open"
    clock.seconds += 2
    succeed(breaker)
    assert state(breaker) == "closed"


def test_a_cancelled_trial_leaves_room_for_the_next_one(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker, times=3)
    clock.seconds += 2
    with pytest.raises(asyncio.CancelledError), breaker.call():
        raise asyncio.CancelledError
    assert state(breaker) == "half-open"
    succeed(breaker)
    assert state(breaker) == "closed"


def test_a_cancelled_call_counts_neither_as_a_failure_nor_as_a_success(breaker: CircuitBreaker) -> None:
    fail(breaker, times=2)
    with pytest.raises(asyncio.CancelledError), breaker.call():
        raise asyncio.CancelledError
    assert state(breaker) == "closed"
    fail(breaker)
    assert state(breaker) == "open"


def test_a_late_success_closes_the_circuit(breaker: CircuitBreaker) -> None:
    late = breaker.call()
    late.__enter__()  # made while the circuit was closed, and still without an answer
    fail(breaker, times=3)
    assert state(breaker) == "open"
    late.__exit__(None, None, None)
    assert state(breaker) == "closed"


def test_a_late_failure_does_not_make_room_for_a_second_trial(breaker: CircuitBreaker, clock: Clock) -> None:
    late = breaker.call()
    late.__enter__()  # made while the circuit was closed, and still without an answer
    fail(breaker, times=3)
    clock.seconds += 2
    with breaker.call():
        late.__exit__(Failure, Failure(), None)
        clock.seconds += 2
        with pytest.raises(CircuitOpen), breaker.call():
            raise AssertionError("a second trial was made")
