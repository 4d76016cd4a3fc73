"""No file names a package registry's host or somebody's home: both belong to a machine, not here."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WRITTEN_BY_UV = {"uv.lock"}

REGISTRY_HOST = re.compile(
    r"pypi\.org|pythonhosted\.org|anaconda\.org|npmjs\.org|jitpack\.io"
    r"|\bmaven\.org|repo1?\.maven|maven\.apache\.org|maven\.google|sonatype\.(?:org|com)|repository\.apache\.org"
    r"|packages\.confluent\.io",
    re.IGNORECASE,
)
# Written as `o{2}`, so that the pattern does not match this line.
HOME_PATH = re.compile(r"(?<![\w.$}/])/(?:(?:home|Users)/\w|ro{2}t\b)|[A-Z]:\\Users\\")
RULES = (REGISTRY_HOST, HOME_PATH)


def found_in(text: str) -> list[str]:
    return [f"line {text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for p in RULES for m in p.finditer(text)]


def project_files() -> list[Path]:
    """Returns the files that git tracks, and new ones that it does not ignore."""
    # safe.directory: the checkout may belong to another user than the one who runs the tests.
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listing.split("\0") if name and name not in WRITTEN_BY_UV]


def text_of(file: Path) -> str:
    content = file.read_bytes() if file.is_file() else b""
    return "" if b"\0" in content else content.decode(errors="replace")


def test_no_file_names_a_registry_host_or_a_home() -> None:
    found = {str(file.relative_to(ROOT)): found_in(text_of(file)) for file in project_files()}
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_every_kind_of_file_of_the_project_is_searched() -> None:
    names = {str(file.relative_to(ROOT)) for file in project_files()}
    assert {
        "pyproject.toml",
        "shared/settings.py",
        "infra/docker/Dockerfile",
        "tests/unit/project/test_no_hosts.py",
    } <= names


# These are put together at run time, so that this file can be searched as well.
DOT, SLASH = ".", "/"


@pytest.mark.parametrize(
    "text",
    [
        f"index-url = https://pypi{DOT}org/simple",
        f"https://files{DOT}pythonhosted{DOT}org/packages",
        f"https://repo1{DOT}maven{DOT}org/maven2",
        f"https://repo{DOT}maven{DOT}apache{DOT}org/maven2",
        f"https://oss{DOT}sonatype{DOT}org",
        f"https://packages{DOT}confluent{DOT}io/maven",
        f"path = {SLASH}home{SLASH}ann/till",
        f"{SLASH}Users{SLASH}ann/till",
        f"--mount=type=cache,target={SLASH}root{SLASH}.cache",
        f"HOME={SLASH}root",
        f"C:{chr(92)}Users{chr(92)}ann",
    ],
)
def test_a_host_or_a_home_is_caught(text: str) -> None:
    assert found_in(f"first line\n{text}\n") != []


@pytest.mark.parametrize(
    "text",
    [
        "COPY --from=ghcr.io/astral-sh/uv:0.13.7 /uv /usr/local/bin/uv",
        "image: apache/kafka:4.3.1",
        "org.apache.kafka:kafka-clients:4.3.1",
        "GET /v1/homes/root",
        "cd ~/.cache",
        "https://www.apache.org/licenses/LICENSE-2.0",
    ],
)
def test_an_image_or_a_coordinate_is_accepted(text: str) -> None:
    assert found_in(text) == []
