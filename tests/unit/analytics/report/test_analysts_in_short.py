"""The commands and the notebook of analysts, on a small lake that was written without Spark and Kafka.

`tests/integration/analytics/test_analysts.py` is the long version, on a lake that Spark has filled from Kafka.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from analytics.lake import LakeFiles
from analytics.report.questions import QUESTIONS
from infra.cli import till
from infra.local.processes.ports import free_ports
from tests.till import Ran
from tests.unit.analytics.report.notebook import assert_the_notebook_runs

TillLake = Callable[..., Ran]


@pytest.fixture
def environment(sold: LakeFiles) -> dict[str, str]:
    return {"TILL_HOME": str(sold.settings.home), "TILL_KAFKA_BOOTSTRAP": f"127.0.0.1:{free_ports(1)[0]}"}


@pytest.fixture
def till_lake(environment: dict[str, str]) -> TillLake:
    """Runs `till lake` in this process."""

    def run(*arguments: str) -> Ran:
        ran = CliRunner().invoke(till, ["lake", *arguments], env=environment, catch_exceptions=False)
        return Ran(ran.exit_code, ran.stdout, ran.stderr)

    return run


def test_all_questions_are_answered_as_json_and_as_a_page(till_lake: TillLake) -> None:
    answers = {it["question"]: it["answer"] for it in till_lake("questions", "--json").document}
    assert list(answers) == [question.title for question in QUESTIONS]
    assert [(row["status"], row["orders"]) for row in answers["Why are orders cancelled?"]] == [("confirmed", 1)]
    page = till_lake("questions", "--markdown").out
    assert page.startswith("# Ten questions to the lake\n")
    assert page.count("\n```sql\n") == len(QUESTIONS) == 10


def test_all_tables_are_listed(till_lake: TillLake, sold: LakeFiles) -> None:
    ran = till_lake("tables")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == sold.tables()


def test_the_report_is_one_page_without_links_to_other_files(till_lake: TillLake, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert till_lake("report", "-o", str(file)).code == 0
    page = file.read_text()
    assert re.findall("<h2>(.*?)</h2>", page) == ["Sales", "From cart to order", "Products", "Fraud", "Freshness"]
    assert set(re.findall(r"\w+://[^\"'\s<]*", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_the_notebook_runs(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert_the_notebook_runs()
