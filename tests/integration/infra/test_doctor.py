"""`till doctor` and `till install`, on this machine as it is, and with parts missing."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from infra.cli import till
from shared.errors import OperatorError

Findings = dict[str, dict[str, Any]]


def examine(**environment: str) -> tuple[int, Findings]:
    result = CliRunner().invoke(till, ["doctor", "--json"], env=environment)
    report = json.loads(result.stdout)
    assert report["ok"] == (result.exit_code == 0)
    return result.exit_code, {finding["what"]: finding for finding in report["findings"]}


def test_doctor_finds_what_this_machine_has(tmp_path: Path) -> None:
    _, findings = examine(TILL_HOME=str(tmp_path))
    assert findings["Jars, kafka"]["found"] == "92 of 92 verified"
    for what in ("Python", "Java", "Jars, kafka", "Jars, spark", "Jars, registry", "PostgreSQL"):
        assert findings[what]["ok"], findings[what]


def test_doctor_finds_an_empty_cache_and_names_the_command_that_fills_it(tmp_path: Path) -> None:
    code, findings = examine(TILL_CACHE=str(tmp_path))
    assert code == 1
    for bundle in ("kafka", "spark", "registry"):
        finding = findings[f"Jars, {bundle}"]
        assert finding["found"].startswith("0 of ")
        assert (finding["ok"], finding["todo"]) == (False, "till install")


def test_doctor_names_a_corrupted_jar(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/slf4j-api-1.7.36.jar").write_text("not a jar")
    _, findings = examine(TILL_CACHE=str(tmp_path))
    assert findings["Jars, kafka"]["found"] == "0 of 92 verified; slf4j-api-1.7.36.jar is corrupted"


def test_doctor_finds_that_java_is_missing_and_names_the_setting(tmp_path: Path) -> None:
    code, findings = examine(TILL_JAVA_HOME=str(tmp_path))
    assert code == 1
    assert "cannot be run" in findings["Java"]["found"]
    assert "TILL_JAVA_HOME" in findings["Java"]["todo"]


def test_doctor_finds_a_port_in_use_and_names_its_setting(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, findings = examine(TILL_HOME=str(tmp_path), TILL_SHOP_PORT=str(port))
    assert code == 1
    assert findings["Port, shop"]["found"] == f"{port} is taken"
    assert findings["Port, shop"]["todo"] == "set another TILL_SHOP_PORT"


def test_an_install_with_nothing_to_do_prints_nothing() -> None:
    result = CliRunner().invoke(till, ["install"])
    assert (result.exit_code, result.output) == (0, "")


def test_an_install_that_may_not_install_java_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = CliRunner().invoke(till, ["install"])
    assert isinstance(result.exception, OperatorError)
    assert "Java 17 or newer is needed" in result.exception.message
    assert result.exception.hint
