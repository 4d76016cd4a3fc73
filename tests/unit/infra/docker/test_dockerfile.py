"""Checks the Dockerfile without an engine: the project has what it copies, installs and runs."""

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

from infra.settings import Settings
from shared.settings import PREFIX

ROOT = Path(__file__).parents[4]
DOCKERFILE = (ROOT / "infra/docker/Dockerfile").read_text()
OUR_PACKAGES = {"schemas", "shared", "services", "analytics", "infra"}


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
    """Yields what is copied from the project, not from another image or stage."""
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
    """Says whether .dockerignore excludes a file: the last matching pattern decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch(source, pattern):
            ignored = not line.startswith("!")
    return ignored


def unused_sources(dockerfile: str) -> Iterator[str]:
    """Finds copied files that a service does not need, such as tests and documents, and missing ones."""
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
    """The command is in exec form: with a shell in between, the service would not receive SIGTERM."""
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


def test_compose_and_image_agree_on_the_user() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    assert f"user: {json.dumps(of('USER', DOCKERFILE)[-1])}" in compose
