"""History judged under other rules: payments that would have been caught, missed, or held for nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analytics.fraud.rules import TODAY, parse_rules
from analytics.fraud.whatif import Comparison, Period, compare_rules
from tests.roll import numbered
from tests.till import Till
from tests.unit.analytics.fraud.payments import Happened, Payment, after, bought, failed, silver_payments

STRICTER = TODAY.read_text().replace(
    "{ at_least = 4, score = 60 }, { at_least = 8, score = 95 }", "{ at_least = 2, score = 91 }"
)


def story() -> Iterator[Happened]:
    """Tells of a card tester, an unlucky honest customer, and a stranger. All of them pay in the end."""
    for n in range(5):
        yield from failed(f"tester-{n}", "tester", n * 10)
    for customer in ("unlucky", "nobody"):
        for n in range(2):
            yield from failed(f"{customer}-{n}", customer, n * 10)
    yield from bought("tester-9", "tester", 60, 9000)
    yield from bought("unlucky-9", "unlucky", 60, 500)
    nobodys = Payment("nobody-9", "nobody", 70)
    yield from (nobodys.asked(60), nobodys.paid(61), nobodys.refunded(90))
    early = Payment("early", "tester", 70)
    yield early.asked(31.5)  # within the seconds that an alert takes
    yield from bought("tester-late", "tester", 11 * 60 + 24 * 3600, 40)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Comparison:
    payments = silver_payments(spark, numbered(story()))
    labels = {f"order-tester-{n}": True for n in range(10)} | {"order-unlucky-9": False, "order-early": True}
    today, other = parse_rules(TODAY.read_text(), "today"), parse_rules(STRICTER, "stricter")
    return compare_rules(payments, today, other, labels, Period(after(0), after(100_000)))


def verdicts(found: Comparison) -> dict[tuple[str, str, str, bool], tuple[int, int]]:
    return {(it.truth, it.today, it.other, it.was_kept): (it.payments, it.amount) for it in found.groups}


def test_every_payment_is_judged_under_both_sets_of_rules(found: Comparison) -> None:
    assert verdicts(found) == {
        # Declined payments: the tester's third and fourth come after the stricter rule has been reached.
        ("fraud", "allowed", "allowed", False): (2, 2000),
        ("fraud", "allowed", "refused", False): (3, 2070),
        ("fraud", "held", "refused", False): (1, 1000),
        ("fraud", "held", "refused", True): (1, 9000),
        ("honest", "allowed", "refused", True): (1, 500),
        ("honest", "allowed", "allowed", True): (1, 40),  # a day later
        ("unknown", "allowed", "allowed", False): (4, 4000),
        ("unknown", "allowed", "refused", False): (1, 70),
    }


def test_alerts_are_counted_by_rule(found: Comparison) -> None:
    assert found.alerts["declines"] == (2, 6)
    assert found.alerts["attempts"] == (0, 0)


def test_payments_with_another_verdict_are_listed_with_reasons_the_largest_first(found: Comparison) -> None:
    assert found.different == 7
    largest = found.differences[0]
    assert (largest.order_id, largest.today, largest.other, largest.truth) == (
        "order-tester-9",
        "held",
        "refused",
        "fraud",
    )
    assert largest.reasons == ["at least 2 declined payments of one customer within 10 minutes"]


def test_a_broken_rules_file_is_reported_in_one_line_as_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(STRICTER.replace("every = 5", "every = 3"))
    ran = Till({"TILL_HOME": str(tmp_path), "PATH": ""})("whatif", "fraud", "--rules", "wrong.toml")
    assert ran.code == 2
    assert ran.err == "error: wrong.toml:8 ([windows]): every: 3 does not divide the 10 minutes of a window\n"


def test_whatif_without_a_lake_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(STRICTER)
    ran = Till({"TILL_HOME": str(tmp_path), "PATH": ""})("whatif", "fraud", "--rules", "rules.toml", "--json")
    assert ran.code == 1
    assert "till lake run" in ran.err
