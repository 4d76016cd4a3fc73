"""The lake commands around Spark: one ingest at a time, Spark's output in a log, progress as steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from infra.cli import till
from infra.cli.commands.lake.spark import alone
from infra.cli.commands.lake.work import lines_as_steps
from infra.settings import Settings
from shared.errors import OperatorError

NOISY = """
import os, subprocess, sys
from pathlib import Path
from infra.cli.render.console import err
from infra.cli.commands.lake.spark import _stderr_to_log

with _stderr_to_log(Path(sys.argv[1])):
    subprocess.run(["sh", "-c", "echo from java >&2"])
    print("a warning", file=sys.stderr)
    err.print("for people")
print("afterwards", file=sys.stderr)
"""


def test_only_one_ingest_runs_on_a_lake(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path)
    with alone(settings):
        with pytest.raises(OperatorError, match="Another till lake run or stream is at work"), alone(settings):
            pass
        with alone(Settings.load(home=tmp_path / "another")):
            pass
    with alone(settings):
        pass


def test_output_of_spark_goes_to_the_log_and_ours_to_the_terminal(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", NOISY, tmp_path], capture_output=True, text=True, env=os.environ)
    assert ran.stderr == "for people\nafterwards\n"
    assert (tmp_path / "logs" / "lake.log").read_text() == "from java\na warning\n"


def test_a_line_about_a_table_becomes_a_finished_step() -> None:
    steps: list[tuple[str, str]] = []
    say = lines_as_steps(lambda name, state: steps.append((name, state)), "gold.funnel")
    say("reading bronze from the beginning, up to batch 7 of the ingest")
    say("gold.funnel: swapped")
    assert steps == [
        ("gold.funnel", "reading bronze from the beginning, up to batch 7 of the ingest"),
        ("gold.funnel", "done: swapped"),
    ]


def test_a_table_that_does_not_exist_is_named_before_spark_starts() -> None:
    ran = CliRunner().invoke(till, ["lake", "replay", "nothing"])
    assert ran.exit_code == 2
    assert "There is no gold table nothing. There are: carts, orders, " in ran.stderr
