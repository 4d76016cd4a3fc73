"""Time travel: versions are chosen by the timestamps in the commits, at a cut that all tables of a query share."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics.lake import LakeFiles
from analytics.log import table_log
from analytics.query import time_travel
from analytics.query.ask import ask
from shared.errors import OperatorError
from tests.unit.analytics.delta import backdate, commit

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
CARTS, GOLD = "silver.cart_events", "gold.orders"


def noon_and(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def write(lake: LakeFiles, name: str, reached: int, after: float, rows: int = 1) -> None:
    """Commits rows some seconds after noon, with the offset that was reached."""
    events = [{"event_id": f"{name} {reached} {n}"} for n in range(rows)]
    version = commit(lake, name, events, offsets={"cart.events": {"0": reached}})
    backdate(lake, name, version, int(noon_and(after).timestamp() * 1000))


def versions(lake: LakeFiles, at: datetime, *names: str) -> dict[str, int]:
    return time_travel.versions_at(lake, names, at)


def count(lake: LakeFiles, at: datetime) -> int:
    [(rows,)] = ask(lake, f"SELECT count(*) FROM {CARTS}", at).rows
    return int(rows)


def test_a_version_is_visible_from_its_commit_on_to_the_millisecond(lake: LakeFiles) -> None:
    """File times do not matter: a lake that was copied has those of the copy."""
    for n in range(4):
        write(lake, CARTS, reached=n, after=10 * n)
    assert [count(lake, noon_and(s)) for s in (0, 9.999, 10, 29.999, 30, 86400)] == [1, 1, 2, 3, 4, 4]


def test_before_the_first_commit_there_is_no_version(lake: LakeFiles) -> None:
    write(lake, CARTS, reached=1, after=0)
    with pytest.raises(
        OperatorError, match=r"shows 2026-11-16 11:59:59 UTC: its history begins at 2026-11-16 12:00:00"
    ):
        count(lake, noon_and(-1))


def test_tables_of_a_query_are_shown_at_the_same_cut(lake: LakeFiles) -> None:
    """Gold follows silver in larger steps. Where both are queried, silver is shown as gold saw it."""
    for n in range(1, 7):
        write(lake, CARTS, reached=n, after=n)
    write(lake, GOLD, reached=2, after=2.5)
    write(lake, GOLD, reached=5, after=5.5)
    assert versions(lake, noon_and(4), CARTS) == {CARTS: 3}
    assert versions(lake, noon_and(4), CARTS, GOLD) == {CARTS: 1, GOLD: 0}
    assert versions(lake, noon_and(5.5), CARTS, GOLD) == {CARTS: 4, GOLD: 1}


def test_a_moment_between_the_commits_of_a_batch_shows_the_batch_before(lake: LakeFiles) -> None:
    for n in (1, 2):
        write(lake, "bronze.events", reached=n, after=10 * n)
        write(lake, CARTS, reached=n, after=10 * n + 1)
    assert versions(lake, noon_and(20.5), "bronze.events", CARTS) == {"bronze.events": 0, CARTS: 0}
    assert versions(lake, noon_and(21), "bronze.events", CARTS) == {"bronze.events": 1, CARTS: 1}


def test_tables_that_never_meet_later_are_shown_at_the_cut_they_share(lake: LakeFiles) -> None:
    for n in (1, 3, 5):
        write(lake, CARTS, reached=n, after=n)
    for n in (1, 2, 4):
        write(lake, GOLD, reached=n, after=n)
    assert versions(lake, noon_and(9), CARTS, GOLD) == {CARTS: 0, GOLD: 0}


def test_a_compaction_shows_what_was_committed_before_it(lake: LakeFiles) -> None:
    write(lake, CARTS, reached=1, after=1)
    write(lake, CARTS, reached=2, after=2)
    lake.snapshot(CARTS).optimize.compact()
    backdate(lake, CARTS, 2, int(noon_and(3).timestamp() * 1000))
    write(lake, GOLD, reached=2, after=2.5)
    write(lake, CARTS, reached=3, after=4)
    assert versions(lake, noon_and(5), CARTS, GOLD) == {CARTS: 2, GOLD: 0}


def test_a_table_without_offsets_holds_no_other_back(lake: LakeFiles) -> None:
    write(lake, CARTS, reached=1, after=1)
    commit(lake, "bronze.schemas", [])
    backdate(lake, "bronze.schemas", 0, int(NOON.timestamp() * 1000))
    assert versions(lake, noon_and(5), CARTS, "bronze.schemas") == {CARTS: 0, "bronze.schemas": 0}


def test_a_long_history_is_read_in_pages(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same as if it were read at once."""
    monkeypatch.setattr(table_log, "WINDOWS", (2, 5, None))
    for n in range(12):
        write(lake, CARTS, reached=n, after=n)
    assert [versions(lake, noon_and(n), CARTS)[CARTS] for n in range(12)] == list(range(12))


def test_a_quarantine_without_new_messages_is_not_behind(lake: LakeFiles) -> None:
    """Quarantine gets a commit only when it gets a row."""
    for n in (1, 2, 3):
        write(lake, CARTS, reached=n, after=n)
    write(lake, "silver.quarantine", reached=1, after=1.5)
    assert versions(lake, noon_and(5), CARTS, "silver.quarantine") == {CARTS: 2, "silver.quarantine": 0}
    write(lake, "silver.quarantine", reached=4, after=4)
    assert versions(lake, noon_and(5), CARTS, "silver.quarantine") == {CARTS: 2, "silver.quarantine": 0}
