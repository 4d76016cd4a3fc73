"""Reads markdown pages: their fenced blocks, links, headings and inline code."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
INLINE_CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block with the HTML comment directly above it, if there is one."""

    language: str
    text: str
    line: int
    """Line of the first line of `text`, counted from 1."""
    note: str


@dataclass(frozen=True)
class Page:
    path: Path
    text: str

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def blocks(self) -> list[Block]:
        found = []
        for fence in FENCE.finditer(self.text):
            before = self.text[: fence.start()].rstrip()
            note = before[before.rfind("<!--") + 4 : -3].strip() if before.endswith("-->") else ""
            line = self.text.count("\n", 0, fence.start("text")) + 1
            found.append(Block(fence["language"], fence["text"], line, note))
        return found

    @property
    def prose(self) -> str:
        """The text without fenced blocks and HTML comments."""
        return COMMENT.sub("", FENCE.sub("", self.text))

    @property
    def links(self) -> list[str]:
        found: list[str] = LINK.findall(INLINE_CODE.sub("code", self.prose))
        return found

    @property
    def inline_code(self) -> list[str]:
        return INLINE_CODE.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """The anchors that GitHub gives to the page's headings."""
        seen: dict[str, int] = {}
        anchors = set()
        for heading in HEADING.findall(FENCE.sub("", self.text)):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            anchors.add(f"{slug}-{seen[slug]}" if slug in seen else slug)
            seen[slug] = seen.get(slug, 0) + 1
        return anchors


def page(name: str) -> Page:
    path = ROOT / name
    return Page(path, path.read_text(encoding="utf-8"))


@cache
def project_files() -> frozenset[str]:
    """Every file and folder of the project that git knows or is about to know, relative to the root."""
    # safe.directory: the checkout may belong to another user than the one who runs the tests.
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listing.split("\0") if name and (ROOT / name).exists()]
    folders = {parent for file in files for parent in file.parents}
    return frozenset(path.as_posix() for path in [*files, *folders])


def pages() -> list[Page]:
    """Every markdown page of the project. Templates of generated pages are checked as the pages they become."""
    names = [name for name in sorted(project_files()) if name.endswith(".md")]
    return [page(name) for name in names if not name.startswith("infra/cli/reference/")]
