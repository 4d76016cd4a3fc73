"""Earlier events are searched in few ranges of ids, which contain every id of a batch and little else."""

from hypothesis import given
from hypothesis import strategies as st

from analytics.ingest.deduplication import MOST_RANGES, ranges_of

PREFIXES = st.sets(st.integers(0, 2**32 - 1).map(lambda n: f"{n:08x}"), max_size=60)


@given(PREFIXES)
def test_every_id_is_in_a_range_and_ranges_are_few_and_apart(prefixes: set[str]) -> None:
    ranges = ranges_of(prefixes)
    assert len(ranges) <= MOST_RANGES
    assert all(any(low <= prefix <= high for low, high in ranges) for prefix in prefixes)
    assert [edge for one in ranges for edge in one] == sorted(edge for one in ranges for edge in one)
    assert {edge for one in ranges for edge in one} <= prefixes


def test_one_late_event_does_not_widen_the_range_of_the_others() -> None:
    today = [f"019cae{n:02x}" for n in range(20)]
    assert ("019ca000", "019ca000") in ranges_of([*today, "019ca000"])


def test_ids_that_are_not_uuids_are_searched_as_well() -> None:
    ranges = ranges_of(["order-12", "zzz", "", "019cae00"])
    assert all(any(low <= prefix <= high for low, high in ranges) for prefix in ["order-12", "zzz", "", "019cae00"])
