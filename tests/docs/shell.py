"""Runs the `sh` blocks of a page in one shell, as a reader would, and checks each exit code and stated output.

A block is left out only if the page says so in an HTML comment directly above it: `<!-- not run: reason -->`.
A comment `# → text` behind a command says what its output contains.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from tempfile import TemporaryFile

from tests.docs.markdown import ROOT, Page

NOT_RUN = "not run:"
EXPECTED = re.compile(r"# → (.+?) *$", re.MULTILINE)
MARK = "\x1e"
# The pages name the default ports; a throwaway stack has others.
PORTS = {"127.0.0.1:8080": "TILL_SHOP_PORT", "127.0.0.1:8190": "TILL_PSP_PORT"}
# An HTTP error fails the command that got it, although the page does not clutter its commands with the option.
PRELUDE = """set -euo pipefail
curl() { command curl --fail-with-body --max-time 60 "$@"; }
"""


@dataclass(frozen=True)
class Command:
    text: str
    line: int

    @property
    def expected(self) -> list[str]:
        return EXPECTED.findall(self.text)


@dataclass(frozen=True)
class Ran:
    command: Command
    output: str


def commands(page: Page) -> list[Command]:
    return [
        command
        for block in page.blocks
        if block.language == "sh" and not block.note.startswith(NOT_RUN)
        for command in _split(block.text, block.line)
    ]


def run(page: Page, environment: Mapping[str, str], seconds: float) -> list[Ran]:
    """Runs all commands of the page. Fails at the first that ends with an error or lacks its stated output."""
    wanted = commands(page)
    script = PRELUDE + "".join(
        f"printf '{MARK}%d\\n' {number}\n{command.text}\n" for number, command in enumerate(wanted)
    )
    for default, setting in PORTS.items():
        script = script.replace(default, f"127.0.0.1:{environment[setting]}")
    # Into a file: processes that a command leaves running may hold a pipe open for ever.
    with TemporaryFile("w+") as printed:
        try:
            code = subprocess.run(
                ["bash", "-c", script],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                timeout=seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
        printed.seek(0)
        ran = [Ran(wanted[int(number)], output) for number, output in _outputs(printed.read())]
    if code or len(ran) != len(wanted):
        last = ran[-1]
        ended = f"exit code {code}" if code >= 0 else f"no end after {seconds:g} s"
        raise AssertionError(f"{page}:{last.command.line}: {ended} of\n{last.command.text}\n{last.output}")
    for one in ran:
        for expected in one.command.expected:
            assert expected in one.output, f"{page}:{one.command.line}: no {expected!r} in\n{one.output}"
    return ran


def _outputs(printed: str) -> Iterator[tuple[str, str]]:
    for part in printed.split(MARK)[1:]:
        number, _, output = part.partition("\n")
        yield number, output


def _split(block: str, line: int) -> Iterator[Command]:
    """The commands of a block. A command ends with the first line at which the shell finds it complete."""
    waiting: list[str] = []
    for number, text in enumerate(block.splitlines(), start=line):
        waiting.append(text)
        if not text.endswith("\\") and _is_complete("\n".join(waiting)):
            if any(part.strip() and not part.lstrip().startswith("#") for part in waiting):
                yield Command("\n".join(waiting), number - len(waiting) + 1)
            waiting = []
    assert not waiting, f"a block ends within a command: {waiting}"


def _is_complete(text: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0
