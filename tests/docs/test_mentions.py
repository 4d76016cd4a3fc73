"""Everything that the pages name exists: commands of `till` with their options, targets of make, files, folders."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from infra.cli import till
from tests.docs.markdown import ROOT, Page, pages, project_files

COMMAND = re.compile(r"^(?:\./)?till +(?P<arguments>[a-z].*)$")
MAKE = re.compile(r"^make ([a-z-]+)")
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
FOLDERS = ("shared/", "services/", "analytics/", "infra/", "tests/", "schemas/", "docs/")
FILE = re.compile(rf"^(?:{'|'.join(FOLDERS)})[\w./-]*\w/?$")
NEW = re.compile(r"`([^`\n]+)` \(new\)")
"""A file that the reader is to create."""
# The history names what there was.
HISTORY = {"CHANGELOG.md"}


def lines_of_code(page: Page) -> Iterator[str]:
    """Lines of `sh` blocks and of indented code, and inline code."""
    for block in page.blocks:
        if block.language == "sh":
            yield from (line.strip() for line in block.text.replace("\\\n", " ").splitlines())
    yield from (line.strip() for line in page.prose.splitlines() if line.startswith("    "))
    yield from page.inline_code


def problem_of_command(line: str) -> str | None:
    """Says what is wrong with a line that calls `till`: no such command, or no such option of it."""
    call = COMMAND.match(line)
    if not call:
        return None
    words = _words(call["arguments"])
    command: click.Command = till
    while words and isinstance(command, click.Group):
        name = words.pop(0)
        if not name[0].isalpha() or name.isupper():
            return None
        found = command.get_command(click.Context(command), name)
        if found is None:
            return f"{line}: there is no command {name}"
        command = found
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options |= {"-h", "--help"}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]
    return f"{line}: there is no option {unknown[0]}" if unknown else None


def _words(arguments: str) -> list[str]:
    """The words up to the end of the command: an explanation behind it starts after two spaces or with #."""
    before = re.split(r" {2,}| #|[|>;)]", arguments)[0] if '"' not in arguments else arguments
    try:
        return shlex.split(before, comments=True)
    except ValueError:
        return before.split()


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_command_of_till_that_a_page_names_exists(page: Page) -> None:
    assert [found for line in lines_of_code(page) if (found := problem_of_command(line))] == []


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_target_of_make_that_a_page_names_exists(page: Page) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    named = {made[1] for line in lines_of_code(page) if (made := MAKE.match(line))}
    assert named - targets == set()


@pytest.mark.parametrize("page", [page for page in pages() if str(page) not in HISTORY], ids=str)
def test_every_file_that_a_page_names_exists(page: Page) -> None:
    named = {code.rstrip("/") for code in page.inline_code if FILE.match(code)}
    named -= {code.rstrip("/") for code in NEW.findall(page.prose)}
    assert named - project_files() == set()


@pytest.mark.parametrize(
    "line",
    ["till frobnicate", "till lake frobnicate", "till rebuild orders --hard", "./till verify --quick   # all of it"],
)
def test_a_command_that_does_not_exist_is_seen(line: str) -> None:
    assert problem_of_command(line)


@pytest.mark.parametrize(
    "line",
    [
        "till up --brokers 3        replication 3",
        "./till state cart:ID --at -5m     # as it was",
        'till sql "SELECT 1" --at -5m',
        "till lake",
        "till lake run --accept cart.events",
        "a till roll",
    ],
)
def test_a_command_that_exists_is_let_through(line: str) -> None:
    assert problem_of_command(line) is None
