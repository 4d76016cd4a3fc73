"""The local stack: real servers are started, checked and stopped."""

import asyncio
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from infra.local.home import writable
from infra.local.processes.ports import is_open
from infra.local.processes.process import recorded
from infra.local.servers import kafka
from infra.local.throwaway import throwaway
from infra.local.warmup import archive_classes
from infra.settings import Settings
from shared.errors import OperatorError
from tests.till import Till, is_there


@pytest.fixture
def till() -> Iterator[Till]:
    with throwaway() as environment:
        yield Till(environment)


@pytest.fixture
def running(stack_environment: dict[str, str]) -> Till:
    return Till(stack_environment)


def test_status_tests_each_server_with_real_work(running: Till) -> None:
    ran = running("status", "--json")

    assert ran.code == 0
    processes = {process["name"]: process for process in ran.document["processes"]}
    assert set(processes) == {"postgres", "kafka", "registry"}
    for process in processes.values():
        assert process["healthy"], process
        assert process["version"]
        assert process["since"]
        assert process["memory"] > 10_000_000
    assert sum(process["memory"] for process in processes.values()) < 900_000_000


def test_up_twice_is_harmless(running: Till) -> None:
    before = [process.pid for process in recorded(running.home)]

    ran = running("up", "--servers-only")

    assert ran.code == 0
    assert ran.err.count("already running") == 3
    assert [process.pid for process in recorded(running.home)] == before


def test_down_leaves_no_process_and_no_used_port(till: Till) -> None:
    assert till("up", "--only", "postgres").code == 0
    [process] = recorded(till.home)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert is_open(till.port("TILL_POSTGRES_PORT"))

    ran = till("down", "--json")

    assert ran.document == {"stopped": ["postgres"]}
    assert not any(is_there(process) for process in family)
    assert not is_open(till.port("TILL_POSTGRES_PORT"))
    assert list(recorded(till.home)) == []
    assert till("down").out == "Nothing was running.\n"


def test_two_ups_at_once_start_one_server(till: Till) -> None:
    commands = [till.begin("up", "--only", "postgres", "--json") for _ in range(2)]
    ends = [(*command.communicate(timeout=60), command.returncode) for command in commands]

    assert [code for *_, code in ends] == [0, 0], ends
    assert len({out for out, *_ in ends}) == 1


def test_a_used_port_is_an_error_that_names_its_setting_before_anything_starts(till: Till) -> None:
    with socket.create_server(("127.0.0.1", till.port("TILL_REGISTRY_PORT"))):
        ran = till("up")

    assert ran.code == 1
    assert f"Port {till.port('TILL_REGISTRY_PORT')} for registry is in use by " in ran.err
    assert "TILL_REGISTRY_PORT" in ran.err.splitlines()[1]
    assert list(recorded(till.home)) == []
    assert not (till.home / "postgres").exists()


def test_a_server_that_was_not_started_is_down(till: Till) -> None:
    ran = till("status", "--json")

    assert ran.code == 1
    assert {process["reason"] for process in ran.document["processes"]} == {"not started"}


def test_a_home_of_one_broker_is_not_opened_with_three(till: Till) -> None:
    (till.home / "kafka").mkdir()
    (till.home / "kafka" / "cluster.json").write_text('{"id": "MkU3OEVBNTcwNTJENDM2Qg", "brokers": 1}')

    ran = till("up", "--brokers", "3")

    assert ran.code == 1
    assert "was created with 1 broker(s), not 3" in ran.err
    assert not (till.home / "till.env").exists()


def test_the_secrets_are_generated_once_and_for_the_owner_only(till: Till) -> None:
    assert till("up", "--only", "postgres").code == 0
    file = till.home / "till.env"
    first = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {line.partition("=")[0] for line in first.splitlines() if not line.startswith("#")} >= {
        "TILL_KAFKA_BROKERS",
        "TILL_DATABASE_PASSWORD",
        "TILL_AUTH_SECRET",
        "TILL_MASTER_KEY",
    }

    assert till("down").code == 0
    assert till("up", "--only", "postgres").code == 0
    assert file.read_text() == first

    refused = till("up", "--only", "postgres", TILL_DATABASE_PASSWORD="another")
    assert refused.code == 1
    assert "TILL_DATABASE_PASSWORD" in refused.err


def test_the_shop_owns_its_database_but_not_the_server(stack: Settings) -> None:
    async def ask() -> list[object]:
        connection = await asyncpg.connect(stack.database_url.get_secret_value())
        try:
            rights = "SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = current_user"
            settings = "SELECT current_setting('fsync'), current_setting('wal_level')"
            return [tuple(await connection.fetchrow(query) or ()) for query in (rights, settings)]
        finally:
            await connection.close()

    assert asyncio.run(ask()) == [(False, True), ("on", "logical")]


def test_logs_are_shown_by_name(running: Till) -> None:
    assert "database system is ready" in running("logs", "postgres", "-n", "1000000").out
    assert len(running("logs", "kafka", "-n", "3").out.splitlines()) == 3
    assert {line.split()[0] for line in running("logs", "-n", "1").out.splitlines()} == {
        "kafka",
        "postgres",
        "registry",
    }
    assert running("logs", "nobody").code == 2


def test_logs_are_followed(running: Till) -> None:
    log = running.home / "logs" / "kafka.log"
    with running.begin("logs", "kafka", "-f", "-n", "1") as following:
        assert following.stdout
        assert following.stdout.readline()
        with log.open("a") as stream:
            stream.write("a line of this test\n")
        assert "a line of this test\n" in following.stdout
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 0


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="No space is left"), writable(tmp_path):
        Path("/dev/full").write_text("one line too many")


def test_a_home_that_cannot_be_created_is_a_clear_error(till: Till) -> None:
    (till.home / "file").touch()

    ran = till("up", TILL_HOME=str(till.home / "file" / "home"))

    assert ran.code == 1
    assert "cannot be written: Not a directory" in ran.err
    assert "TILL_HOME" in ran.err


def test_class_archives_are_written_once_and_then_used(stack: Settings, tmp_path: Path) -> None:
    (tmp_path / "jars").symlink_to(stack.cache / "jars")
    settings = stack.model_copy(update={"cache": tmp_path})

    assert asyncio.run(archive_classes(settings)) is True

    assert sorted(file.name.partition("-")[0] for file in (tmp_path / "classes").iterdir()) == ["kafka", "registry"]
    program = asyncio.run(kafka.java_program(settings))
    version = subprocess.run(program.command(["-Xshare:on"], ["-version"]), capture_output=True, text=True)
    assert (version.returncode, "sharing" in version.stderr) == (0, True), version.stderr
    assert asyncio.run(archive_classes(settings)) is False
