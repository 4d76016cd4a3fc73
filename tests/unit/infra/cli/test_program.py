"""Hints name `till` as it can be typed here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.cli.render.program import callable_here, program


@pytest.fixture(autouse=True)
def _nothing_is_cached() -> Iterator[None]:
    program.cache_clear()
    yield
    program.cache_clear()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "till").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def test_a_clone_is_called_by_its_script(clone: Path) -> None:
    assert callable_here("Start it with: till up. Compare with: till topics") == (
        "Start it with: ./till up. Compare with: ./till topics"
    )


def test_a_program_on_the_path_is_called_by_its_name(clone: Path) -> None:
    (clone / "bin").mkdir()
    (clone / "bin" / "till").touch(mode=0o755)
    assert callable_here("Start it with: till up") == "Start it with: till up"


@pytest.mark.parametrize("text", ["./till up", "until then", "till.env", "`till up`"])
def test_other_text_stays_as_it_is(clone: Path, text: str) -> None:
    assert callable_here(text) == text
