"""`till --help` and the help of every command: complete, readable on 80 columns, and fast."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from infra.cli import till
from infra.cli.root import COMMANDS, SECTIONS

ROOT = Path(__file__).parents[4]
COLUMNS = 80


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child, name
            yield from commands(child, (*path, name))


def help_of(*path: str, option: str = "--help") -> str:
    ran = CliRunner().invoke(till, [*path, option], prog_name="till", terminal_width=COLUMNS)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize("path", list(commands(till)), ids=" ".join)
def test_every_command_has_help_under_both_options(path: tuple[str, ...]) -> None:
    assert help_of(*path, option="-h") == help_of(*path)


@pytest.mark.parametrize("path", [path for path in commands(till) if path], ids=" ".join)
def test_every_command_has_examples_that_call_it(path: tuple[str, ...]) -> None:
    heading, _, examples = help_of(*path).partition("  Example")
    assert f"till {' '.join(path)}" in examples.partition("\nOptions:")[0], heading


@pytest.mark.parametrize("path", list(commands(till)), ids=" ".join)
def test_no_summary_of_a_command_is_cut_off(path: tuple[str, ...]) -> None:
    listed = help_of(*path).partition("\nCommands:\n")[2]
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


def test_the_list_of_commands_has_one_line_for_each() -> None:
    lines = help_of().splitlines()
    for name, entry in COMMANDS.items():
        assert [line for line in lines if line.split() == [name, *entry.summary.split()]], name
    assert max(map(len, lines)) <= COLUMNS


def test_the_sections_of_the_help_are_the_folders_of_the_commands() -> None:
    folders = [{entry.place.partition(".")[0] for entry in section.values()} for section in SECTIONS.values()]
    assert all(len(folder) == 1 for folder in folders), folders
    assert len(set.union(*folders)) == len(SECTIONS)


def test_help_imports_nothing_that_is_slow() -> None:
    script = "import sys; from infra.cli import till; till(['--help'], standalone_mode=False); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}
    assert not loaded & {"aiokafka", "asyncpg", "fastapi", "httpx", "orjson", "pydantic", "rich", "services"}


def test_an_age_is_a_moment_and_not_an_option_of_till_at() -> None:
    ran = CliRunner().invoke(till, ["at", "-5x"])
    assert (ran.exit_code, "'-5x' is not a moment" in ran.stderr) == (2, True), ran.stderr
    assert "No such option" in CliRunner().invoke(till, ["at", "-2h", "--nothing"]).stderr


def test_a_clone_without_an_installation_says_how_to_install(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "till", tmp_path)
    ran = subprocess.run([script, "status"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr == f"error: Nothing is installed in {tmp_path} yet.\n  → Run: make install\n"
