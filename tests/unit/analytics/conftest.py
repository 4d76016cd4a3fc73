"""Fixtures of the lake's unit tests."""

from pathlib import Path

import pytest

from analytics.lake import LakeFiles
from infra.settings import Settings


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    """A lake without tables, in a home of its own."""
    return LakeFiles(Settings.load(home=tmp_path))
