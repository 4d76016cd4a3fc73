"""Every relative link of every page leads somewhere, and every page of docs/ can be reached from its index."""

import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Page, page, pages, project_files

EXTERNAL = re.compile(r"^[a-z]+:")
LINES = re.compile(r"L(\d+)(?:-L(\d+))?")


def target_of(source: Page, link: str) -> tuple[str, str]:
    """Path relative to the root, and the anchor."""
    path, _, anchor = link.partition("#")
    absolute = (source.path.parent / path).resolve() if path else source.path
    return absolute.relative_to(ROOT).as_posix(), anchor


def problem(source: Page, link: str) -> str | None:
    if EXTERNAL.match(link):
        return None
    target, anchor = target_of(source, link)
    if target not in project_files():
        return f"{source}: {link} leads nowhere"
    if not anchor:
        return None
    if target.endswith(".md"):
        return None if anchor in page(target).anchors else f"{source}: {link}: there is no such heading"
    lines = LINES.fullmatch(anchor)
    last = int(lines[2] or lines[1]) if lines else 0
    if not 0 < last <= len((ROOT / target).read_text(encoding="utf-8").splitlines()):
        return f"{source}: {link}: there is no such line"
    return None


@pytest.mark.parametrize("source", pages(), ids=str)
def test_every_link_leads_somewhere(source: Page) -> None:
    assert [found for link in source.links if (found := problem(source, link))] == []


def test_every_page_is_reached_from_the_index_of_the_docs() -> None:
    reached, waiting = set[str](), ["docs/README.md"]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in project_files():
            continue
        reached.add(name)
        if name.endswith(".md"):
            here = page(name)
            waiting += [target_of(here, link)[0] for link in here.links if not EXTERNAL.match(link)]
    files = {name for name in project_files() if name.startswith("docs/") and (ROOT / name).is_file()}
    assert files - reached == set()


@pytest.mark.parametrize(
    "link", ["nowhere.md", "../README.md#no-such-heading", "../Makefile#L9999", "../Makefile#L0", "#nor-this"]
)
def test_a_broken_link_is_seen(link: str) -> None:
    assert problem(Page(ROOT / "docs" / "here.md", "# Here"), link)


def test_a_link_in_code_is_no_link(tmp_path: Path) -> None:
    text = "```sh\n[a](b.md)\n```\n`[c](d.md)` and [`e`](f.md) <!-- [g](h.md) -->"
    assert Page(tmp_path, text).links == ["f.md"]


def test_anchors_are_those_of_github() -> None:
    text = "# One POST, 15 stops\n## `till up`: start\n## What's new?\n## Twice\n## Twice\n"
    anchors = {"one-post-15-stops", "till-up-start", "whats-new", "twice", "twice-1"}
    assert Page(ROOT / "x.md", text).anchors == anchors
