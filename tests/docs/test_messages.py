"""The error messages that the troubleshooting page quotes are those of the code, with … for what differs."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.docs.markdown import ROOT, page

PACKAGES = ("shared", "services", "analytics", "infra")
GAP = "…"


def quoted() -> list[str]:
    blocks = [block for block in page("docs/troubleshooting.md").blocks if block.language == "text"]
    return [line for block in blocks for line in block.text.splitlines()]


@cache
def messages() -> frozenset[str]:
    """Every string of the code; the values that an f-string fills in are gaps."""
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return frozenset(text for file in files for text in strings(ast.parse(file.read_text())))


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=values):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in values)
            case ast.Constant(value=str(text)):
                yield text


def is_message(line: str) -> bool:
    """A line that ends with a gap quotes the beginning of a message."""
    if line.endswith(GAP):
        return any(text.startswith(line.removesuffix(GAP)) for text in messages())
    return line in messages()


def test_every_message_of_the_page_is_one_of_the_code() -> None:
    assert [line for line in quoted() if not is_message(line)] == []


def test_a_message_that_the_code_does_not_have_is_seen() -> None:
    assert len(quoted()) > 10
    assert not is_message("The moon is in the way of ….")
