"""The fingerprint of a fold changes with its code and with the format of states, so that old snapshots are ignored."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from services.catalog.settings import CatalogSettings
from services.catalog.wiring import catalog
from shared.decider import Decider
from shared.store.snapshots import fold_fingerprint

STOCK = catalog(CatalogSettings()).decider

SHELF = "def put(total: int, amount: int) -> int:\n    return total + amount\n"
EVENTS = "from dataclasses import dataclass\n\n@dataclass\nclass Added:\n    amount: int\n"
FOLD = """
from {package}.events import Added
from {package}.shop import Shop

def evolve(state: Shop, event: Added) -> Shop:
    return Shop(state.total + event.amount)
"""
SHOP = """
from dataclasses import dataclass
from {package} import shelf

@dataclass
class Shop:
    total: int
    def add(self, amount: int) -> "Shop":
        return Shop(shelf.put(self.total, amount))
"""


def fingerprint(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> str:
    """The fingerprint of a fold whose code is in `folder`, imported as another process would."""
    package = "example_of_a_fold"
    sources = {"fold": FOLD, "shop": SHOP, "events": EVENTS, "shelf": SHELF, "__init__": ""} | files
    (folder / package).mkdir(parents=True)
    for name, source in sources.items():
        (folder / package / f"{name}.py").write_text(source.format(package=package))
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(folder))
        fold: ModuleType = importlib.import_module(f"{package}.fold")
    return fold_fingerprint(Decider("example", "topic", None, lambda _command, _state: [], fold.evolve))


@pytest.mark.parametrize("changed", ["fold", "shop", "events", "shelf"])
def test_a_change_anywhere_in_the_code_of_a_fold_makes_it_another_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    original = {"fold": FOLD, "shop": SHOP, "events": EVENTS, "shelf": SHELF}[changed]
    before = fingerprint(tmp_path / "before", monkeypatch)
    assert fingerprint(tmp_path / "same", monkeypatch) == before
    assert fingerprint(tmp_path / "after", monkeypatch, **{changed: original + "\n# changed\n"}) != before


def test_the_fold_of_stock_includes_its_reservations_and_money(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fold_fingerprint(STOCK)
    for name in ("services.catalog.reservations", "services.catalog.shelf", "services.common.money"):
        other = ModuleType(name)
        other.__file__ = __file__
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, name, other)
            assert fold_fingerprint(STOCK) != before, name


def test_another_format_of_stored_states_makes_it_another_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fold_fingerprint(STOCK)
    monkeypatch.setattr("shared.store.snapshots.FORMAT", "another format")
    assert fold_fingerprint(STOCK) != before
