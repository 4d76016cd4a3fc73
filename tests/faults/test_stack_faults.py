"""The local stack survives killed servers, a killed owner, an interrupted start, and reused pids."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import orjson
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from infra.local.processes.ports import is_open
from infra.local.processes.process import Process, recorded
from infra.local.servers import postgres
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings
from shared.messaging.kafka import client_options, open_admin
from tests.till import Till, eventually, is_there


@pytest.fixture
def till() -> Iterator[Till]:
    with throwaway() as environment:
        yield Till(environment)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of PostgreSQL's user, because PostgreSQL ignores the processes of other users."""
    user = postgres.NOBODY if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "600"], user=user) as process:
        yield process
        process.kill()


def family(process: Process) -> list[psutil.Process]:
    root = psutil.Process(process.pid)
    return [root, *root.children(recursive=True)]


def test_after_kill_9_of_everything_up_finds_all_data(till: Till) -> None:
    assert till("up", "--servers-only").code == 0
    settings = settings_of(till.environment)
    schema_id = asyncio.run(write(settings))

    killed = [member for process in recorded(till.home) for member in family(process)]
    for member in killed:
        member.kill()
    eventually(lambda: not any(map(is_there, killed)), "all are dead")
    dead = till("status")
    assert dead.code == 1
    assert dead.out.count(" died") == 3
    assert till("up", "--servers-only").code == 0

    assert asyncio.run(read(settings)) == ("a fact", "a row", schema_id)

    survivors = [member for process in recorded(till.home) for member in family(process)]
    assert sorted(till("down", "--json").document["stopped"]) == ["kafka", "postgres", "registry"]
    assert not any(map(is_there, survivors))
    assert not any(is_open(int(port)) for name, port in till.environment.items() if name.endswith("_PORT"))


async def write(settings: Settings) -> int:
    """Writes a record, a row and a schema, and returns the id of the schema."""
    async with AIOKafkaProducer(**client_options(settings), acks="all") as producer:
        await producer.send_and_wait("cart.events", b"a fact", partition=3)
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    await connection.execute("CREATE TABLE kept (what text); INSERT INTO kept VALUES ('a row')")
    await connection.close()
    return await register(settings)


async def read(settings: Settings) -> tuple[str, str, int]:
    async with AIOKafkaConsumer(**client_options(settings)) as consumer:
        partition = TopicPartition("cart.events", 3)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        record = await asyncio.wait_for(consumer.getone(), 20)
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    row = await connection.fetchval("SELECT what FROM kept")
    await connection.close()
    return record.value.decode(), row, await register(settings)


async def register(settings: Settings) -> int:
    schema = '{"type":"record","name":"Kept","fields":[{"name":"what","type":"string"}]}'
    async with httpx.AsyncClient(base_url=settings.registry_url) as registry:
        answer = await registry.post("/subjects/kept/versions", json={"schema": schema})
        level = await registry.get("/config")
    assert level.json() == {"compatibilityLevel": "FULL_TRANSITIVE"}
    return int(answer.raise_for_status().json()["id"])


def test_with_three_brokers_one_may_die() -> None:
    with throwaway(brokers=3) as environment:
        till = Till(environment)
        assert till("up", "--only", "kafka-1", "--only", "kafka-2", "--only", "kafka-3").code == 0
        settings = settings_of(environment)

        leader = asyncio.run(leader_of_replicated_topic(settings))
        [victim] = [process for process in recorded(till.home) if process.name == f"kafka-{leader}"]
        os.kill(victim.pid, signal.SIGKILL)

        assert asyncio.run(send(settings)) == 0
        status = till("status", "--json")
        assert status.code == 1
        [reason] = [p["reason"] for p in status.document["processes"] if p["name"] == victim.name]
        assert reason.startswith(f"{victim.name} died")


async def leader_of_replicated_topic(settings: Settings) -> int:
    async with open_admin(settings) as admin:
        topics = {topic["topic"]: topic["partitions"] for topic in await admin.describe_topics()}
    assert {len(partition["replicas"]) for partition in topics["order.events"]} == {3}
    return int(topics["order.events"][0]["leader"])


async def send(settings: Settings) -> int:
    async with AIOKafkaProducer(**client_options(settings), acks="all", enable_idempotence=True) as producer:
        sent = await asyncio.wait_for(producer.send_and_wait("order.events", b"a fact", partition=0), 60)
    return int(sent.offset)


def test_a_server_that_dies_while_starting_is_explained_from_its_log(till: Till) -> None:
    ran = till("up", "--servers-only", TILL_KAFKA_HEAP="1m")

    assert ran.code == 1
    assert "error: kafka died while starting (exit code 1). Its log says:" in ran.err
    assert "Too small maximum heap" in ran.err
    assert "till logs kafka" in ran.err
    assert list(recorded(till.home)) == []
    assert not is_open(till.port("TILL_POSTGRES_PORT"))


def test_stale_files_neither_block_a_start_nor_harm_another_process(
    till: Till, stranger: subprocess.Popen[bytes]
) -> None:
    assert till("up", "--only", "postgres").code == 0
    [process] = recorded(till.home)
    for member in family(process):
        member.kill()
    eventually(lambda: not process.is_alive(), "it is dead")
    # The pid of the dead server belongs to another process by now, and half a run file is left.
    run_file = till.home / "run" / "postgres.json"
    run_file.write_bytes(orjson.dumps(orjson.loads(run_file.read_bytes()) | {"pid": stranger.pid}))
    (till.home / "run" / "kafka.json").write_text('{"name": "kaf')
    lock = till.home / "postgres" / "postmaster.pid"
    lock.write_text(lock.read_text().replace(str(process.pid), str(stranger.pid), 1))

    assert till("down").out == "Nothing was running.\n"
    started = till("up", "--only", "postgres")

    assert started.code == 0, started.err
    assert stranger.poll() is None
    assert till("down", "--json").document == {"stopped": ["postgres"]}
    assert stranger.poll() is None


def test_a_zombie_of_a_dead_server_does_not_block_a_start(till: Till) -> None:
    assert till("up", "--only", "postgres").code == 0
    [process] = recorded(till.home)
    for member in family(process):
        member.kill()
    eventually(lambda: not process.is_alive(), "it is dead")
    # As in a container whose first process reaps no orphans: the pid belongs to a zombie of PostgreSQL's user.
    namesake = ["sh", "-c", "printf postgres > /proc/self/comm"]
    with subprocess.Popen(namesake, user=postgres.NOBODY if os.geteuid() == 0 else None) as uncollected:
        eventually(lambda: not is_there(psutil.Process(uncollected.pid)), "it is a zombie")
        lock = till.home / "postgres" / "postmaster.pid"
        lock.write_text(lock.read_text().replace(str(process.pid), str(uncollected.pid), 1))

        started = till("up", "--only", "postgres")

    assert started.code == 0, started.err


def test_an_interrupted_start_leaves_nothing_running(till: Till) -> None:
    with till.begin("up", "--servers-only") as starting:
        eventually((till.home / "run" / "kafka.json").exists, "Kafka is starting")
        begun = list(recorded(till.home))
        starting.send_signal(signal.SIGINT)
        starting.communicate(timeout=30)

    assert starting.returncode == 1
    assert begun
    assert not any(process.is_alive() for process in begun)
    assert list(recorded(till.home)) == []
    assert till("up", "--only", "postgres").code == 0


OWNER = """
import subprocess, sys
from infra.local.throwaway import throwaway

with throwaway() as environment:
    subprocess.run([sys.argv[1], "up", "--only", "postgres"], env=environment, check=True, capture_output=True)
    print(environment["TILL_HOME"], flush=True)
    sys.stdin.read()
"""


def test_the_stack_of_a_killed_test_run_ends_with_it() -> None:
    till_command = str(Path(sys.executable).with_name("till"))
    command = [sys.executable, "-c", OWNER, till_command]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        home = Path(owner.stdout.readline().strip())
        [process] = recorded(home)
        assert process.is_alive()
        owner.kill()

    eventually(lambda: not process.is_alive(), "its server is gone")
    eventually(lambda: not home.exists(), "its home is gone")
