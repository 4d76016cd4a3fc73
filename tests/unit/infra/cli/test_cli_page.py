"""The reference page of the command line is up to date."""

import subprocess
import sys
from pathlib import Path


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    written = (Path(__file__).parents[4] / "docs" / "cli.md").read_text()
    # In its own process, because click caches the help of a command that another test has called.
    ran = subprocess.run(
        [sys.executable, "-m", "infra.cli.reference.cli_page"], capture_output=True, text=True, check=True
    )
    assert written == ran.stdout, "Run: make docs"
