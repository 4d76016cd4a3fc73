"""Choosing a Java, and the error when none is suitable. Stand-ins answer as those Javas would."""

from pathlib import Path

import pytest

from infra.java.package import install_command
from infra.java.runtime import SPARK_MODULE, find_java
from infra.settings import Settings
from shared.errors import OperatorError


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path/bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("TILL_JAVA_HOME", raising=False)


def java(home: Path, version: str, *modules: str) -> Path:
    lines = "\n".join(f"echo {module}@{version}" for module in ("java.base", *modules))
    return executable(home, f'echo "    java.home = {home}" >&2\n{lines}')


def executable(home: Path, script: str) -> Path:
    binary = home / "bin/java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return home


def refusal(settings: Settings) -> OperatorError:
    with pytest.raises(OperatorError) as refused:
        find_java(settings)
    return refused.value


def test_without_java_the_error_names_the_command_that_installs_it() -> None:
    error = refusal(Settings())
    assert "none was found in JAVA_HOME or on the PATH" in error.message
    assert error.hint == install_command()


def test_the_setting_goes_before_java_home_and_java_home_before_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java(tmp_path / "path", "17.0.1", SPARK_MODULE)
    assert find_java(Settings()).source == "PATH"
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "home", "21.0.2", SPARK_MODULE)))
    assert find_java(Settings()).source == "JAVA_HOME"
    found = find_java(Settings(java_home=java(tmp_path / "setting", "17.0.3", SPARK_MODULE)))
    assert (found.source, found.version, found.major) == ("TILL_JAVA_HOME", "17.0.3", 17)
    assert found.binary == tmp_path / "setting/bin/java"


def test_a_link_leads_to_the_real_home(tmp_path: Path) -> None:
    real = java(tmp_path / "real", "17", SPARK_MODULE)
    (tmp_path / "path/bin").mkdir(parents=True)
    (tmp_path / "path/bin/java").symlink_to(real / "bin/java")
    assert find_java(Settings()).binary == real / "bin/java"


def test_a_java_home_that_is_too_old_does_not_hide_a_good_one_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.2", SPARK_MODULE)))
    assert "is Java 11.0.2" in refusal(Settings()).message
    java(tmp_path / "path", "17.0.1", SPARK_MODULE)
    assert find_java(Settings()).version == "17.0.1"


def test_a_java_home_setting_that_does_not_work_is_an_error_even_if_there_is_another_java(tmp_path: Path) -> None:
    java(tmp_path / "path", "17.0.1", SPARK_MODULE)
    error = refusal(Settings(java_home=tmp_path / "nowhere"))
    assert f"{tmp_path}/nowhere/bin/java (TILL_JAVA_HOME) cannot be run: No such file" in error.message
    assert "TILL_JAVA_HOME" in error.hint


def test_a_stripped_java_is_refused_because_spark_would_not_start(tmp_path: Path) -> None:
    assert SPARK_MODULE in refusal(Settings(java_home=java(tmp_path / "stripped", "17.0.1"))).message


def test_a_java_too_old_to_know_modules_is_refused(tmp_path: Path) -> None:
    ancient = executable(tmp_path / "8", 'echo "Unrecognized option: --list-modules" >&2; exit 1')
    assert "older than Java 9" in refusal(Settings(java_home=ancient)).message
