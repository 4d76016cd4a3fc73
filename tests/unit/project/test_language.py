"""Docstrings can be understood alone: none begins with a word that continues a sentence from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("schemas", "shared", "services", "analytics", "infra", "tests")
# Written as `[O]f`, so that the pattern does not match this line.
HEADLESS = re.compile(r'"""([O]f|[B]y|[T]hat|[A]s|[W]here|[W]ho|[W]hat|[W]hich|[N]one|[B]oth|[N]ot) ')


def headless(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if HEADLESS.search(line):
            yield f"{number}: {line.strip()}"


def test_no_docstring_is_a_fragment() -> None:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    assert [f"{file.relative_to(ROOT)}:{found}" for file in files for found in headless(file.read_text())] == []


@pytest.mark.parametrize("docstring", ["Of those that are sent.", "By name.", "What Kafka answers.", "None if absent."])
def test_a_docstring_that_is_a_fragment_is_found(docstring: str) -> None:
    [found] = headless(f'def f():\n    """{docstring}"""\n')
    assert found.startswith("2: ")


@pytest.mark.parametrize("docstring", ["Publishes outbox rows.", "Offsets by partition.", "Asks the registry."])
def test_a_docstring_that_is_a_sentence_is_accepted(docstring: str) -> None:
    assert list(headless(f'"""{docstring}"""')) == []
