"""The commands of the README, of the tutorial and of the page about HTTP work, one after the other, on a real shop."""

import pytest

from tests.docs.markdown import ROOT, Page, page
from tests.docs.shell import NOT_RUN, PORTS, Ran, commands, run

WALKS = ("README.md", "docs/tutorial.md", "docs/http.md")
DEFAULT_PORTS = {setting: address.rpartition(":")[2] for address, setting in PORTS.items()}


def test_every_command_of_the_tutorial_works(tutorial: list[Ran]) -> None:
    assert len(tutorial) > 20


def test_every_command_of_the_readme_works(shop: dict[str, str], tutorial: list[Ran]) -> None:
    """The README walks through the shop that `make demo` leaves: it has orders and a lake, as after the tutorial."""
    run(page("README.md"), shop, seconds=120)


def test_every_command_of_the_page_about_http_works(shop: dict[str, str]) -> None:
    run(page("docs/http.md"), shop, seconds=120)


@pytest.mark.parametrize("name", WALKS)
def test_blocks_that_are_not_run_only_install_and_start_the_shop(name: str) -> None:
    left_out = [b for b in page(name).blocks if b.language == "sh" and b.note.startswith(NOT_RUN)]
    lines = [line.split("#")[0].split() for block in left_out for line in block.text.splitlines() if line.strip()]
    assert all(words[0] == "make" for words in lines)


@pytest.mark.parametrize("name", WALKS)
def test_no_command_hides_from_the_test_in_a_block_of_another_kind(name: str) -> None:
    assert {block.language for block in page(name).blocks} <= {"sh", "mermaid"}
    assert not [line for line in page(name).prose.splitlines() if line.startswith("    ")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo one\nfalse\necho two", "exit code 1"),
        ("false | cat", "exit code 1"),
        ("echo one   # → two", "no 'two'"),
        ("sleep 9", "no end after"),
    ],
)
def test_a_command_that_fails_or_prints_something_else_is_seen(text: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        run(Page(ROOT / "x.md", f"```sh\n{text}\n```\n"), DEFAULT_PORTS, seconds=2)


def test_a_block_becomes_commands() -> None:
    text = (
        '```sh\n# first\na=1\ncurl -s x |\n  cat\n\nb "\n" \\\n  c  # → d\n```\n<!-- not run: no -->\n```sh\nx\n```\n'
    )
    found = commands(Page(ROOT / "x.md", text))
    assert [(command.line, command.text) for command in found] == [
        (3, "a=1"),
        (4, "curl -s x |\n  cat"),
        (7, 'b "\n" \\\n  c  # → d'),
    ]
    assert found[-1].expected == ["d"]
