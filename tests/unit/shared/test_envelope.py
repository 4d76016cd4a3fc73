"""The envelope of an event: stored events become headers, and headers become the same events again."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from shared.envelope import (
    Context,
    Recorded,
    cloud_event_headers,
    from_cloud_event,
    from_millis,
    millis,
    pack_headers,
    rfc3339,
    unpack_headers,
)

NOON = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
EVENT = Recorded("cart:a", 7, "0190a5c0-0000-7000-8000-0000000000aa", "ItemAdded", NOON, "c", "b", "ann", "t", b"\0\1")

moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))
events = st.builds(
    Recorded,
    stream_id=st.text(),
    version=st.integers(1, 2**31 - 1),
    event_id=st.uuids().map(str),
    type=st.text(),
    time=moments,
    correlation_id=st.text(),
    causation_id=st.text(),
    actor=st.text(),
    traceparent=st.text(),
    value=st.binary(),
)


@given(events)
def test_an_event_comes_back_from_its_headers_to_the_microsecond(event: Recorded) -> None:
    headers = cloud_event_headers(event, "/till-roll/cart")
    assert from_cloud_event(dict(headers), event.value) == event


@given(events)
def test_headers_depend_on_the_stored_event_alone(event: Recorded) -> None:
    """Otherwise a republished message would differ from the first one."""
    again = Recorded(*event)
    assert pack_headers(cloud_event_headers(again, "/s")) == pack_headers(cloud_event_headers(event, "/s"))


def test_the_headers_are_those_of_the_contract() -> None:
    assert cloud_event_headers(EVENT, "/till-roll/cart") == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"0190a5c0-0000-7000-8000-0000000000aa"),
        ("ce_type", b"ItemAdded"),
        ("ce_source", b"/till-roll/cart"),
        ("ce_subject", b"cart:a"),
        ("ce_time", b"2026-05-01T12:00:00.123456Z"),
        ("ce_streamversion", b"7"),
        ("ce_correlationid", b"c"),
        ("ce_causationid", b"b"),
        ("ce_actor", b"ann"),
        ("traceparent", b"t"),
    ]


@given(st.lists(st.tuples(st.text(), st.binary() | st.none())))
def test_packed_headers_keep_their_order_their_duplicates_and_their_nulls(headers: list[tuple[str, bytes]]) -> None:
    assert unpack_headers(pack_headers(headers)) == headers


@given(st.integers(0, 7_258_118_400_000))
def test_a_millisecond_is_the_same_millisecond_after_a_round_trip(moment: int) -> None:
    assert millis(from_millis(moment)) == moment


@given(moments)
def test_milliseconds_are_rounded_down(moment: datetime) -> None:
    assert from_millis(millis(moment)) == moment - timedelta(microseconds=moment.microsecond % 1000)


def test_a_time_is_written_in_utc_with_all_its_digits() -> None:
    berlin = timezone(timedelta(hours=2))
    assert rfc3339(datetime(2026, 5, 1, 14, 0, 0, tzinfo=berlin)) == "2026-05-01T12:00:00.000000Z"


def test_each_request_without_a_correlation_id_begins_a_chain_of_its_own() -> None:
    assert Context("ann").correlation_id != Context("ann").correlation_id
