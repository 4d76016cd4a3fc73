"""What the commands of the lake do around Spark: one at a time, its noise in a log, its lines as steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from infra.cli.lake_spark import alone
from infra.cli.lake_work import lines, replay
from shared.errors import OperatorError
from shared.settings import Settings

NOISY = """
import os, subprocess, sys
from pathlib import Path
from infra.cli.console import err
from infra.cli.lake_spark import _noise_in_a_log

with _noise_in_a_log(Path(sys.argv[1])):
    subprocess.run(["sh", "-c", "echo from java >&2"])
    print("a warning", file=sys.stderr)
    err.print("for people")
print("afterwards", file=sys.stderr)
"""


def test_one_at_a_time_works_on_a_lake(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path)
    with alone(settings):
        with pytest.raises(OperatorError, match="Another till lake run or stream is at work"), alone(settings):
            pass
        with alone(Settings.load(home=tmp_path / "another")):
            pass
    with alone(settings):
        pass


def test_noise_goes_into_the_log_and_what_is_for_people_to_them(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", NOISY, tmp_path], capture_output=True, text=True, env=os.environ)
    assert ran.stderr == "for people\nafterwards\n"
    assert (tmp_path / "logs" / "lake.log").read_text() == "from java\na warning\n"


def test_what_the_lake_says_of_a_table_is_a_step_that_is_done() -> None:
    steps: list[tuple[str, str]] = []
    say = lines(lambda name, state: steps.append((name, state)), "gold.funnel")
    say("reading bronze from the beginning, up to batch 7 of the ingest")
    say("gold.funnel: swapped")
    assert steps == [
        ("gold.funnel", "reading bronze from the beginning, up to batch 7 of the ingest"),
        ("gold.funnel", "done: swapped"),
    ]


def test_a_table_that_does_not_exist_is_named_before_spark_starts() -> None:
    ran = CliRunner().invoke(replay, ["nothing"])
    assert ran.exit_code == 2
    assert "There is no gold table nothing. There are: carts, orders, " in ran.stderr
