import subprocess
import sys
from pathlib import Path


def test_the_page_of_the_command_line_says_what_the_commands_say() -> None:
    written = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    # In a process of its own: click remembers how a command was first asked for help, by whichever test.
    ran = subprocess.run([sys.executable, "-m", "infra.cli.reference"], capture_output=True, text=True, check=True)
    assert written == ran.stdout, "Run: make docs"
