"""The lake as it was: the version of each table is chosen by what its commits say, at a cut that the tables share."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from analytics.reading import travel
from analytics.reading.asking import ask
from shared.errors import OperatorError
from shared.settings import Settings
from tests.unit.lake.delta import backdate, commit

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
CARTS, GOLD = "silver.cart_events", "gold.orders"


def noon_and(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def write(lake: Settings, name: str, reached: int, after: float, rows: int = 1) -> None:
    """A commit so many seconds after noon that has reached so many messages."""
    events = [{"event_id": f"{name} {reached} {n}"} for n in range(rows)]
    version = commit(lake, name, events, offsets={"cart.events": {"0": reached}})
    backdate(lake, name, version, int(noon_and(after).timestamp() * 1000))


@pytest.fixture
def lake(tmp_path: Path) -> Settings:
    return Settings.load(home=tmp_path)


def versions(lake: Settings, at: datetime, *names: str) -> dict[str, int]:
    return travel.versions_at(lake, names, at)


def count(lake: Settings, at: datetime) -> int:
    [(rows,)] = ask(lake, f"SELECT count(*) FROM {CARTS}", at).rows
    return int(rows)


def test_a_version_is_seen_from_its_commit_on_to_the_millisecond(lake: Settings) -> None:
    """Whenever its file was written: a lake that was copied has the times of the copy."""
    for n in range(4):
        write(lake, CARTS, reached=n, after=10 * n)
    assert [count(lake, noon_and(s)) for s in (0, 9.999, 10, 29.999, 30, 86400)] == [1, 1, 2, 3, 4, 4]


def test_before_the_first_commit_there_is_nothing_to_see(lake: Settings) -> None:
    write(lake, CARTS, reached=1, after=0)
    with pytest.raises(
        OperatorError, match=r"shows 2026-11-16 11:59:59 UTC: its history begins at 2026-11-16 12:00:00"
    ):
        count(lake, noon_and(-1))


def test_no_table_is_ahead_of_another(lake: Settings) -> None:
    """Gold follows silver in larger steps. Where they are asked together, silver waits for gold."""
    for n in range(1, 7):
        write(lake, CARTS, reached=n, after=n)
    write(lake, GOLD, reached=2, after=2.5)
    write(lake, GOLD, reached=5, after=5.5)
    assert versions(lake, noon_and(4), CARTS) == {CARTS: 3}
    assert versions(lake, noon_and(4), CARTS, GOLD) == {CARTS: 1, GOLD: 0}
    assert versions(lake, noon_and(5.5), CARTS, GOLD) == {CARTS: 4, GOLD: 1}


def test_a_cut_between_the_commits_of_a_batch_shows_the_batch_before(lake: Settings) -> None:
    for n in (1, 2):
        write(lake, "bronze.events", reached=n, after=10 * n)
        write(lake, CARTS, reached=n, after=10 * n + 1)
    assert versions(lake, noon_and(20.5), "bronze.events", CARTS) == {"bronze.events": 0, CARTS: 0}
    assert versions(lake, noon_and(21), "bronze.events", CARTS) == {"bronze.events": 1, CARTS: 1}


def test_steps_that_cross_are_followed_down_to_one_they_share(lake: Settings) -> None:
    for n in (1, 3, 5):
        write(lake, CARTS, reached=n, after=n)
    for n in (1, 2, 4):
        write(lake, GOLD, reached=n, after=n)
    assert versions(lake, noon_and(9), CARTS, GOLD) == {CARTS: 0, GOLD: 0}


def test_a_compaction_stands_for_what_came_before_it(lake: Settings) -> None:
    write(lake, CARTS, reached=1, after=1)
    write(lake, CARTS, reached=2, after=2)
    DeltaTable(f"{lake.lake}/silver/cart_events").optimize.compact()
    backdate(lake, CARTS, 2, int(noon_and(3).timestamp() * 1000))
    write(lake, GOLD, reached=2, after=2.5)
    write(lake, CARTS, reached=3, after=4)
    assert versions(lake, noon_and(5), CARTS, GOLD) == {CARTS: 2, GOLD: 0}


def test_a_table_that_says_nothing_of_offsets_holds_nobody_back(lake: Settings) -> None:
    write(lake, CARTS, reached=1, after=1)
    commit(lake, "bronze.schemas", [])
    backdate(lake, "bronze.schemas", 0, int(NOON.timestamp() * 1000))
    assert versions(lake, noon_and(5), CARTS, "bronze.schemas") == {CARTS: 0, "bronze.schemas": 0}


def test_a_long_history_is_read_no_further_than_needed(lake: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pages; the same is found as if it were read at once."""
    monkeypatch.setattr(travel, "PAGE", 2)
    for n in range(12):
        write(lake, CARTS, reached=n, after=n)
    assert [versions(lake, noon_and(n), CARTS)[CARTS] for n in range(12)] == list(range(12))


def test_a_quarantine_that_was_spared_is_not_behind(lake: Settings) -> None:
    """It gets a commit only when it gets a row."""
    for n in (1, 2, 3):
        write(lake, CARTS, reached=n, after=n)
    write(lake, "silver.quarantine", reached=1, after=1.5)
    assert versions(lake, noon_and(5), CARTS, "silver.quarantine") == {CARTS: 2, "silver.quarantine": 0}
    write(lake, "silver.quarantine", reached=4, after=4)
    assert versions(lake, noon_and(5), CARTS, "silver.quarantine") == {CARTS: 2, "silver.quarantine": 0}
