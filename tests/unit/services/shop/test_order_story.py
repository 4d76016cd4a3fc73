"""A story is sorted by time, but never an effect before its cause, nor a version before the one it follows."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.shop.order_story import StoryEvent, sort_by_cause
from shared.envelope import Recorded

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def happened(stream: str, version: int, second: int, cause: str = "") -> StoryEvent:
    time = NOON + timedelta(seconds=second)
    name = f"{stream}-{version}"
    return StoryEvent("order", Recorded(stream, version, name, "Placed", time, "", cause, "", "", b""), None)


def names(story: list[StoryEvent]) -> list[str]:
    return [it.recorded.event_id for it in story]


def test_events_without_causes_are_sorted_by_time() -> None:
    story = [happened("b", 1, 2), happened("a", 1, 1), happened("c", 1, 3)]
    assert names(sort_by_cause(story)) == ["a-1", "b-1", "c-1"]


def test_an_effect_waits_for_its_cause_and_a_version_for_the_one_before() -> None:
    story = [happened("b", 1, 1, cause="a-2"), happened("a", 2, 2), happened("a", 1, 9), happened("c", 1, 5)]
    assert names(sort_by_cause(story)) == ["c-1", "a-1", "a-2", "b-1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.integers(0, 30)), max_size=40))
def test_causes_come_before_effects_whatever_the_clocks_say(drawn: list[tuple[str, int, int]]) -> None:
    versions = dict.fromkeys("abc", 0)
    story: list[StoryEvent] = []
    for stream, second, back in drawn:
        versions[stream] += 1
        cause = story[-back].recorded.event_id if 0 < back <= len(story) else ""
        story.append(happened(stream, versions[stream], second, cause))
    order = names(sort_by_cause(story[::-1]))
    assert sorted(order) == sorted(names(story))
    for it in story:
        before = [it.recorded.causation_id, f"{it.recorded.stream_id}-{it.recorded.version - 1}"]
        assert all(order.index(name) < order.index(it.recorded.event_id) for name in before if name in order)


def test_a_stream_of_thousands_of_events_with_reversed_clocks_is_sorted_by_version() -> None:
    story = [happened("a", version, -version) for version in range(1, 3000)]
    assert [it.recorded.version for it in sort_by_cause(story)] == list(range(1, 3000))
