"""The stops of docs/tour.md: each is a link to a line of the code and a quote of what stands there.

`python -m tests.docs.tour` moves the line numbers to where the quoted lines are now.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

from tests.docs.markdown import ROOT

TOUR = ROOT / "docs" / "tour.md"
STOP = re.compile(
    r"\[`?[^\]`]+`?\]\(\.\./(?P<file>[^)#]+)#L(?P<line>\d+)\)(?:(?!```|\]\(\.\./)[\s\S])*?"
    r"\n```\w+\n(?P<quote>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Stop:
    file: str
    line: int
    quote: str

    @property
    def here(self) -> str:
        """The text of the file at the line, as many lines as are quoted."""
        lines = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        return _plain(lines[self.line - 1 :][: len(self.quote.splitlines())])

    @property
    def found(self) -> list[int]:
        """Every line at which the file says what is quoted."""
        lines = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        length = len(self.quote.splitlines())
        return [n for n in range(1, len(lines) + 1) if _plain(lines[n - 1 :][:length]) == self.quote]


def stops(text: str) -> Iterator[Stop]:
    for found in STOP.finditer(text):
        yield Stop(found["file"], int(found["line"]), _plain(found["quote"].splitlines()))


def _plain(lines: list[str]) -> str:
    return dedent("\n".join(line.rstrip() for line in lines))


def main() -> None:
    def moved(found: re.Match[str]) -> str:
        stop = Stop(found["file"], int(found["line"]), _plain(found["quote"].splitlines()))
        if len(stop.found) != 1:
            raise SystemExit(f"{stop.file} has these lines {len(stop.found)} times:\n{stop.quote}")
        return found[0].replace(f"#L{found['line']}", f"#L{stop.found[0]}", 1)

    TOUR.write_text(STOP.sub(moved, TOUR.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
