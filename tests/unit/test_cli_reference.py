from pathlib import Path

from infra.cli.reference import page


def test_the_page_of_the_command_line_says_what_the_commands_say() -> None:
    written = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert written == page(), "Run: make docs"
