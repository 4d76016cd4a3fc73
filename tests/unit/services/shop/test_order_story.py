"""A story is told by time, but never an effect before its cause, nor a version before the one it follows."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.replay.related import Happened, in_order
from shared.envelope import Recorded

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def happened(stream: str, version: int, second: int, cause: str = "") -> Happened:
    time = NOON + timedelta(seconds=second)
    name = f"{stream}-{version}"
    return Happened("order", Recorded(stream, version, name, "Placed", time, "", cause, "", "", b""), None)


def names(told: list[Happened]) -> list[str]:
    return [it.recorded.event_id for it in told]


def test_by_time() -> None:
    told = [happened("b", 1, 2), happened("a", 1, 1), happened("c", 1, 3)]
    assert names(in_order(told)) == ["a-1", "b-1", "c-1"]


def test_an_effect_waits_for_its_cause_and_a_version_for_the_one_before() -> None:
    told = [happened("b", 1, 1, cause="a-2"), happened("a", 2, 2), happened("a", 1, 9), happened("c", 1, 5)]
    assert names(in_order(told)) == ["c-1", "a-1", "a-2", "b-1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 30)), max_size=40))
def test_whatever_the_clocks_say(drawn: list[tuple[str, int, int]]) -> None:
    versions = dict.fromkeys("abc", 0)
    told: list[Happened] = []
    for stream, second, back in drawn:
        versions[stream] += 1
        cause = told[-back].recorded.event_id if 0 < back <= len(told) else ""
        told.append(happened(stream, versions[stream], second, cause))
    order = names(in_order(told[::-1]))
    assert sorted(order) == sorted(names(told))
    for it in told:
        before = [it.recorded.causation_id, f"{it.recorded.stream_id}-{it.recorded.version - 1}"]
        assert all(order.index(name) < order.index(it.recorded.event_id) for name in before if name in order)


def test_a_very_long_stream_is_no_problem() -> None:
    told = [happened("a", version, -version) for version in range(1, 3000)]
    assert [it.recorded.version for it in in_order(told)] == list(range(1, 3000))
