"""Imports point one way, and what decides is pure. Read from the source text; nothing is imported for it."""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "shared", "services", "analytics", "infra")

# Which of our packages a package must not know. `infra` starts and inspects everything, so it may know all.
FORBIDDEN = {
    "schemas": {"shared", "services", "analytics", "infra", "tests"},
    "shared": {"services", "analytics", "infra", "tests"},
    "services": {"analytics", "infra", "tests"},
    "analytics": {"services", "infra", "tests"},
    "infra": {"tests"},
}
# These put the other services together or play them back; every other service knows none but itself.
COMPOSERS = {"services.shop", "services.replay"}

PURE = {"commands", "events", "decider"}
PURE_SHARED = {"shared.errors", "shared.money"}
# The standard library's ways to a clock, to chance, or out of the process.
IMPURE_MODULES = {"asyncio", "io", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket"}
IMPURE_MODULES |= {"sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib"}
IMPURE_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "uuid6", "uuid7", "open", "print", "input"}

Sources = Mapping[str, str]
"""Source text by module name."""


def project_sources() -> dict[str, str]:
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file.read_text() for file in files}


def violations(sources: Sources) -> list[str]:
    pure = pure_modules(sources)
    found: list[str] = []
    for module, source in sorted(sources.items()):
        problems = list(wrong_directions(module, source))
        if module in pure:
            problems += impurities(module, source)
        found += [f"{module} {problem}" for problem in problems]
    return found


def wrong_directions(module: str, source: str) -> Iterator[str]:
    package, own = module.split(".")[0], service_of(module)
    for imported in imports(module, source):
        if imported.split(".")[0] in FORBIDDEN[package]:
            yield f"imports {imported}: {package} must not know {imported.split('.')[0]}"
        foreign = imported.startswith("services.") and not is_within(imported, own)
        if package == "services" and foreign and own not in COMPOSERS:
            yield f"imports {imported}: no service imports another"


def pure_modules(sources: Sources) -> set[str]:
    """The deciders, their commands and events, and what these import from their own service."""
    pure: set[str] = set()
    waiting = [m for m in sources if is_within(m, "services") and m.rpartition(".")[2] in PURE]
    while waiting:
        module = waiting.pop()
        if module in sources and module not in pure:
            pure.add(module)
            names = imports(module, sources[module])
            waiting += [owner(name, sources) for name in names if is_within(name, service_of(module))]
    return pure


def impurities(module: str, source: str) -> Iterator[str]:
    allowed = {service_of(module), *PURE_SHARED}
    for imported in imports(module, source):
        top = imported.split(".")[0]
        if top in IMPURE_MODULES:
            yield f"imports {imported}: a decision has no clock, no chance and no I/O"
        elif top not in sys.stdlib_module_names and not any(is_within(imported, m) for m in allowed):
            yield f"imports {imported}: a decision needs the standard library and its own service only"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (name := called(node)) in IMPURE_CALLS:
            yield f"calls {name}(): time, ids and the world come in with the command"


def imports(module: str, source: str) -> Iterator[str]:
    """Every name that is imported, absolute, wherever in the module it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def service_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def owner(name: str, sources: Sources) -> str:
    """The module an imported name is read from: itself, where it is a module."""
    return name if name in sources else name.rpartition(".")[0]


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_imports_point_one_way_and_deciders_are_pure() -> None:
    assert violations(project_sources()) == []


def test_the_project_has_deciders_to_guard() -> None:
    assert {"services.cart.decider", "services.catalog.decider"} <= pure_modules(project_sources())


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("shared.store", "from services.cart import decider"),
        ("shared.store", "import services.cart.events"),
        ("shared.store", "from infra.local import stack"),
        ("shared.store", "import analytics"),
        ("shared.store", "def late():\n    from services.cart.events import ItemAdded"),
        ("schemas", "from shared.codec import Codec"),
        ("services.cart.api", "from services.order.events import OrderPlaced"),
        ("services.cart.api", "from services import order"),
        ("services.cart.api", "from ..order import events"),
        ("services.cart.api", "from infra.cli import console"),
        ("services.cart.api", "import analytics.gold"),
        ("services.shop.__main__", "from infra.local import stack"),
        ("analytics.ingest.silver", "from services.cart.events import ItemAdded"),
        ("analytics.ingest.silver", "import infra.jars"),
        ("infra.local.stack", "from tests.unit import test_settings"),
        ("services.cart.decider", "import asyncpg"),
        ("services.cart.decider", "from shared.store import EventStore"),
        ("services.cart.decider", "from shared import settings"),
        ("services.cart.decider", "import logging"),
        ("services.cart.decider", "from time import monotonic"),
        ("services.cart.decider", "from datetime import datetime\nopened = datetime.now()"),
        ("services.cart.decider", "from uuid import uuid4\ncart_id = uuid4()"),
        ("services.cart.events", "from pydantic import BaseModel"),
        ("services.cart.commands", "print('adding')"),
    ],
)
def test_a_wrong_import_is_caught(module: str, line: str) -> None:
    assert len(violations({module: line})) == 1


def test_a_module_that_a_decider_uses_must_be_pure_as_well() -> None:
    sources = {
        "services.catalog.decider": "from services.catalog.shelf import Shelf",
        "services.catalog.shelf": "from .counting import count",
        "services.catalog.counting": "import socket",
        "services.catalog.api": "import socket",
    }

    assert violations(sources) == [
        "services.catalog.counting imports socket: a decision has no clock, no chance and no I/O"
    ]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("shared.store", "import asyncpg\nfrom shared.errors import OperatorError"),
        ("shared.codec", "from schemas import topics"),
        ("services.cart.api", "from services.cart import decider\nfrom shared.store import EventStore"),
        ("services.cart.api", "from . import decider"),
        (
            "services.shop.__main__",
            "from services.cart import api\nimport services.catalog.api",
        ),
        ("services.replay.play", "from services.cart.decider import evolve"),
        ("analytics.ingest.silver", "from pyspark.sql import DataFrame\nfrom shared.settings import Settings"),
        ("infra.cli.stack", "from services.cart import decider\nimport analytics.gold"),
        ("services.cart.decider", "from dataclasses import dataclass\nfrom shared.money import Money"),
        (
            "services.cart.decider",
            "from services.cart.events import Event\nfrom .commands import AddItem",
        ),
        ("services.cart.decider", "def due(command): return command.now"),
    ],
)
def test_a_right_import_is_let_through(module: str, line: str) -> None:
    assert violations({module: line}) == []
