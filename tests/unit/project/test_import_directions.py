"""Imports point one way, and decisions are pure. Both are read from the source text; nothing is imported for it.

    schemas <- shared <- services/common <- services/{cart,catalog,order,payment,psp} <- services/shop
            <- services/operations <- services/web, infra
    schemas, shared <- analytics <- infra
    analytics/catalog <- analytics/incremental <- analytics/models <- the rest of analytics

Only tests and `till bench` know `tests`. An import counts wherever it stands, and so does a string that names a module
or a folder of the project: `import_module("...")`, `files("...")`, `PackageLoader("...")`, `root / "tests"`.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("schemas", "shared", "services", "analytics", "infra")

KERNEL = ("schemas", "shared")
SIBLINGS = ("services.cart", "services.catalog", "services.order", "services.payment", "services.psp")
SHOP = (*KERNEL, "services.common", *SIBLINGS, "services.shop")
LAKE = tuple(f"analytics.{name}" for name in ("catalog", "lake", "log", "runtime", "tables"))
# The packages that the modules of a package may import, apart from their own. The first entry that fits counts.
ALLOWED: dict[str, tuple[str, ...]] = {
    "schemas": (),
    "shared": KERNEL,
    "services.__init__": (),
    "services.common": KERNEL,
    **dict.fromkeys(SIBLINGS, (*KERNEL, "services.common")),
    "services.shop": SHOP,
    "services.operations": SHOP,
    "services.web": (*SHOP, "services.operations"),
    "analytics.catalog": KERNEL,
    "analytics.incremental": (*KERNEL, *LAKE),
    "analytics.models": (*KERNEL, "analytics.catalog", "analytics.fraud", "analytics.incremental"),
    "analytics": KERNEL,
    "infra.cli.commands.measure.bench": (*PACKAGES, "tests"),
    "infra": PACKAGES,
}

PURE = {"commands", "events", "decider", "reactions"}
PURE_ELSEWHERE = {"shared.errors", "services.common.fields", "services.common.money"}
# A reaction takes the message that it reacts to; the class is a plain tuple.
PURE_FOR_REACTIONS = {"shared.messaging.incoming.Incoming"}
# The standard library's ways to a clock, to chance, or out of the process.
IMPURE_MODULES = {"asyncio", "io", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket"}
IMPURE_MODULES |= {"sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib"}
IMPURE_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "uuid6", "uuid7", "open", "print", "input"}

DYNAMIC_IMPORTS = {"import_module", "__import__", "find_spec", "run_module", "resolve_name", "files"}
ANY_PACKAGE = "|".join((*PACKAGES, "tests"))
NAMED_MODULE = re.compile(rf"((?:{ANY_PACKAGE})(?:\.\w+)+)(?::\w+)?")
# A package's name alone may be any word, such as a key of a document; but no other thing here is called `tests`.
NAMED_FOLDER = re.compile(rf"tests|(?:{ANY_PACKAGE})/[\w./-]*")

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
    package = next(package for package in ALLOWED if is_within(module, package))
    own = package if package in ("schemas", "shared", "analytics", "infra") else service_of(module)
    tree = ast.parse(source)
    for imported in sorted({*imports(module, source), *named_modules(tree)}):
        ours = imported.split(".")[0] in (*PACKAGES, "tests")
        if ours and not any(is_within(imported, allowed) for allowed in (own, *ALLOWED[package])):
            yield f"imports {imported}: {package} must not know it"
    yield from (f"imports {name}: a name made at run time cannot be checked" for name in unknown_imports(tree))


def pure_modules(sources: Sources) -> set[str]:
    """Returns deciders, commands, events and reactions, and what these import from their own service."""
    pure: set[str] = set()
    waiting = [m for m in sources if m.startswith(SIBLINGS) and m.rpartition(".")[2] in PURE]
    while waiting:
        module = waiting.pop()
        if module in sources and module not in pure:
            pure.add(module)
            names = imports(module, sources[module])
            waiting += [owner(name, sources) for name in names if is_within(name, service_of(module))]
    return pure


def impurities(module: str, source: str) -> Iterator[str]:
    allowed = {service_of(module), *PURE_ELSEWHERE}
    if module.endswith(".reactions"):
        allowed |= PURE_FOR_REACTIONS
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
    """Yields every name that an import statement names, absolute, wherever in the module it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def named_modules(tree: ast.Module) -> Iterator[str]:
    """Yields the modules and folders of the project that strings name, a folder as a module."""
    for name in imported_names(tree):
        if (beginning := beginning_of(name)) is not None:
            yield beginning.rstrip(".")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if found := NAMED_MODULE.fullmatch(node.value):
                yield found[1]
            elif NAMED_FOLDER.fullmatch(node.value):
                yield node.value.rstrip("/").replace("/", ".")


def unknown_imports(tree: ast.Module) -> Iterator[str]:
    for name in imported_names(tree):
        is_own_package = isinstance(name, ast.Name) and name.id == "__package__"
        if beginning_of(name) is None and not is_own_package:
            yield ast.unparse(name)


def imported_names(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields the first argument of every dynamic import, whether it is passed by position or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in DYNAMIC_IMPORTS:
            yield from [*node.args, *(keyword.value for keyword in node.keywords)][:1]


def beginning_of(node: ast.expr) -> str | None:
    """Returns the text that a string, an f-string or a sum of strings certainly begins with."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case ast.BinOp(left=left, op=ast.Add()):
            return beginning_of(left)
        case _:
            return None


def service_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def owner(name: str, sources: Sources) -> str:
    """Returns the module that an imported name is read from: itself, where it is a module."""
    return name if name in sources else name.rpartition(".")[0]


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_imports_point_one_way_and_decisions_are_pure() -> None:
    assert violations(project_sources()) == []


def test_all_deciders_and_reactions_are_guarded() -> None:
    services = ("cart", "catalog", "order", "payment")
    deciders = {f"services.{service}.{name}" for service in services for name in ("commands", "decider", "events")}
    reactions = {f"services.{service}.reactions" for service in ("catalog", "order", "payment")}
    assert deciders | reactions <= pure_modules(project_sources())


def test_every_module_has_a_rule() -> None:
    assert [m for m in project_sources() if not any(is_within(m, package) for package in ALLOWED)] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("shared.store.event_store", "from services.cart import decider"),
        ("shared.store.event_store", "import services.cart.events"),
        ("shared.store.event_store", "from services.common.money import Money"),
        ("shared.store.event_store", "from infra.local import stack"),
        ("shared.store.event_store", "import analytics"),
        ("shared.store.event_store", "def late():\n    from services.cart.events import ItemAdded"),
        ("schemas.play", "from shared.schemas.codec import Codec"),
        ("services.common.money", "from services.cart.events import ItemAdded"),
        ("services.common.money", "from services.shop.services import shop_services"),
        ("services.cart.api", "from services.order.events import OrderPlaced"),
        ("services.cart.api", "from services import order"),
        ("services.cart.api", "from ..order import events"),
        ("services.cart.api", "from services.shop import sessions"),
        ("services.cart.api", "from services.operations.reading import stores"),
        ("services.cart.api", "from infra.cli import console"),
        ("services.cart.api", "import analytics.models"),
        ("services.psp.app", "from services.payment.events import PaymentCaptured"),
        ("services.shop.__main__", "from infra.local import stack"),
        ("services.shop.__main__", "from services.operations.reading import stores"),
        ("services.shop.__main__", "from services.web import pages"),
        ("services.operations.play", "from services.web import pages"),
        ("services.operations.play", "from infra.cli import console"),
        ("services.web.pages", "from infra.cli import console"),
        ("analytics.ingest.silver", "from services.cart.events import ItemAdded"),
        ("analytics.ingest.silver", "from services.common.money import Money"),
        ("analytics.ingest.silver", "import infra.jars"),
        ("analytics.catalog.gold", "from analytics.models import GOLD"),
        ("analytics.incremental.refresh", "from analytics.models.marts.carts import carts"),
        ("analytics.incremental.refresh", "from analytics.serving.speed_layer import refresh_speed"),
        ("analytics.models.marts.carts", "from analytics.lake import Lake"),
        ("infra.local.stack", "from tests.unit import test_settings"),
        ("infra.cli.commands.shop.stack", "import tests.bench.append"),
        ("infra.cli.commands.measure.bench_report", "import tests.bench.append"),
    ],
)
def test_an_import_in_the_wrong_direction_is_caught(module: str, line: str) -> None:
    assert len(violations({module: line})) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("shared.store.migrations", 'files("services")'),
        ("shared.store.migrations", 'resources.files("services.cart")'),
        ("shared.store.migrations", '__import__("services")'),
        ("shared.store.migrations", 'importlib.import_module("services.cart.decider")'),
        ("shared.store.migrations", 'import_module(f"services.{name}.decider")'),
        ("shared.store.migrations", 'import_module("services." + name)'),
        ("shared.store.migrations", "import_module(name)"),
        ("shared.store.migrations", 'import_module(f"{package}.decider")'),
        ("services.cart.api", 'import_module(f"services.{name}.decider")'),
        ("services.cart.api", 'find_spec("services.order")'),
        ("analytics.ingest.silver", 'import_module("services.cart.events")'),
        ("shared.store.migrations", 'import_module(name="services.cart.decider")'),
        ("shared.store.migrations", 'MODULES = ("services.cart.decider", "shared.decider")'),
        ("shared.store.migrations", 'ROOT / f"services/{name}/migrations"'),
        ("analytics.report.page", 'PackageLoader("infra.cli")'),
        ("infra.cli.root", 'MODULE = "tests.bench.append:run"'),
        ("infra.cli.reference.wiring", 'Path(__file__).parents[3] / "tests" / "golden"'),
        ("infra.cli.reference.wiring", 'Path("tests/golden")'),
    ],
)
def test_a_module_that_is_named_in_a_string_is_caught(module: str, line: str) -> None:
    assert len(violations({module: line})) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("services.cart.decider", "import asyncpg"),
        ("services.cart.decider", "from shared.store.event_store import EventStore"),
        ("services.cart.decider", "from shared import settings"),
        ("services.cart.decider", "from shared.messaging.incoming import Incoming"),
        ("services.cart.decider", "import logging"),
        ("services.cart.decider", "from time import monotonic"),
        ("services.cart.decider", "from datetime import datetime\nopened = datetime.now()"),
        ("services.cart.decider", "from uuid import uuid4\ncart_id = uuid4()"),
        ("services.cart.events", "from pydantic import BaseModel"),
        ("services.cart.commands", "print('adding')"),
        ("services.order.reactions", "from shared.envelope import now"),
        ("services.order.reactions", "from shared.messaging.consumer import Consumer"),
        ("services.order.reactions", "def react(message): return clock.now()"),
    ],
)
def test_an_impure_decision_is_caught(module: str, line: str) -> None:
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
        ("shared.store.event_store", "import asyncpg\nfrom shared.errors import OperatorError"),
        ("shared.schemas.codec", "from schemas import topics"),
        ("shared.schemas.codec", 'ROOT = files("schemas")'),
        ("services.cart.api", "from services.cart import decider\nfrom shared.store.event_store import EventStore"),
        ("services.cart.api", "from . import decider"),
        ("services.cart.api", "from services.common.vault import Vault"),
        ("services.catalog.seed", "files(__package__)"),
        ("services.shop.__main__", "from services.cart import api\nimport services.catalog.api"),
        ("services.operations.play", "from services.cart.decider import evolve\nfrom services.shop import services"),
        ("services.web.pages", "from services.operations.history import causes"),
        ("analytics.ingest.silver", "from pyspark.sql import DataFrame\nfrom shared.settings import Settings"),
        ("analytics.fraud.rules", 'files("analytics.fraud")'),
        ("infra.cli.commands.shop.stack", "from services.cart import decider\nimport analytics.models"),
        ("infra.cli.root", 'import_module(f"infra.cli.commands.{name}")'),
        ("shared.process", 'report = {"services": [], "schemas": "schemas/upcasters.py"}'),
        ("infra.cli.commands.measure.bench", 'import_module(f"tests.bench.{name}")'),
        ("services.cart.decider", "from dataclasses import dataclass\nfrom services.common.money import Money"),
        ("services.cart.decider", "from services.cart.events import Event\nfrom .commands import AddItem"),
        ("services.cart.decider", "def due(command): return command.now"),
        ("services.order.reactions", "from shared.messaging.incoming import Incoming"),
    ],
)
def test_an_import_in_the_right_direction_is_accepted(module: str, line: str) -> None:
    assert violations({module: line}) == []
