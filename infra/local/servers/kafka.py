"""Kafka from its published jars: one node or three, each of them broker and controller (KRaft)."""

import base64
import uuid
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from infra.jars.bundles import jars
from infra.local.home import write_whole
from infra.local.processes.tool import run_tool
from infra.local.servers.jvm import Program, program
from infra.local.servers.server import Launch, NotReady, Server
from infra.settings import Settings
from shared.errors import OperatorError
from shared.messaging.kafka import client_options, open_admin
from shared.settings import HOST

NAME = "kafka"
READY_TOPIC = "_till.ready"


def servers(settings: Settings) -> list[Server]:
    return [_server(settings, node) for node in _nodes(settings)]


def name_of(settings: Settings, node: int) -> str:
    return NAME if settings.kafka_brokers == 1 else f"{NAME}-{node}"


def _nodes(settings: Settings) -> range:
    return range(1, settings.kafka_brokers + 1)


def _server(settings: Settings, node: int) -> Server:
    return Server(
        name=name_of(settings, node),
        address=f"{HOST}:{_port(settings, node)}",
        ports={
            "TILL_KAFKA_PORT": _port(settings, node),
            "TILL_KAFKA_CONTROLLER_PORT": _controller_port(settings, node),
        },
        prepare=partial(_prepare, settings, node),
        ready=partial(_ready, settings, node),
    )


def _port(settings: Settings, node: int) -> int:
    return settings.kafka_port + node - 1


def _controller_port(settings: Settings, node: int) -> int:
    return settings.kafka_controller_port + node - 1


def _properties(settings: Settings, node: int) -> dict[str, object]:
    replicas = settings.kafka_brokers
    in_sync = 2 if replicas > 1 else 1
    voters = [f"{n}@{HOST}:{_controller_port(settings, n)}" for n in _nodes(settings)]
    return {
        "process.roles": "broker,controller",
        "node.id": node,
        # Set here rather than in the data, so that the quorum follows when the ports are changed.
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "listeners": (
            f"PLAINTEXT://{HOST}:{_port(settings, node)},CONTROLLER://{HOST}:{_controller_port(settings, node)}"
        ),
        "advertised.listeners": f"PLAINTEXT://{HOST}:{_port(settings, node)}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": _data(settings, node),
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 6,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 6,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "log.message.timestamp.type": "CreateTime",
        "group.initial.rebalance.delay.ms": 0,
        # A lost broker stalls its partitions until its session ends: three seconds instead of nine.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.cleaner.dedupe.buffer.size": 4 * 1024**2,
    }


async def java_program(settings: Settings) -> Program:
    return await program(settings, NAME, jars(settings, "kafka"))


async def _prepare(settings: Settings, node: int) -> Launch:
    cluster_id = _cluster_id(settings)
    java = await java_program(settings)
    config = _data(settings, node).with_name(f"{node}.properties")
    lines = [f"{name}={value}" for name, value in _properties(settings, node).items()]
    write_whole(config, "\n".join(lines) + "\n")
    logging = f"-Dlog4j2.configurationFile={resources.files('infra.local').joinpath('log4j2.properties')}"
    if not (_data(settings, node) / "meta.properties").exists():
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config", str(config)]
        command = java.command([logging], tool)
        await run_tool(settings.home, name_of(settings, node), "creating the data folder", command)
    return java.launch(_version(java.classpath), [f"-Xmx{settings.kafka_heap}", logging], ["kafka.Kafka", str(config)])


def require_same_size(settings: Settings) -> None:
    """Refuses another number of brokers than the data was created with."""
    cluster = _cluster(settings)
    if cluster and cluster["brokers"] != settings.kafka_brokers:
        raise OperatorError(
            f"The Kafka data in {_cluster_file(settings).parent} was created with {cluster['brokers']} broker(s), "
            f"not {settings.kafka_brokers}.",
            f"Keep to --brokers {cluster['brokers']}, set another TILL_HOME, or delete that folder.",
        )


def _cluster_id(settings: Settings) -> str:
    """Returns the id of the cluster, which is created once for all nodes."""
    cluster = _cluster(settings)
    if not cluster:
        # The first letter is fixed, because an id that begins with "-" would be taken for an option.
        new_id = "T" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        cluster = {"id": new_id, "brokers": settings.kafka_brokers}
        _cluster_file(settings).parent.mkdir(parents=True, exist_ok=True)
        write_whole(_cluster_file(settings), orjson.dumps(cluster).decode())
    return str(cluster["id"])


def _cluster(settings: Settings) -> dict[str, Any]:
    file = _cluster_file(settings)
    cluster: dict[str, Any] = orjson.loads(file.read_bytes()) if file.exists() else {}
    return cluster


def _cluster_file(settings: Settings) -> Path:
    return settings.home / "kafka" / "cluster.json"


async def _ready(settings: Settings, node: int) -> None:
    """Writes a record, acknowledged by all replicas, and reads it back through this node."""
    here = settings.model_copy(update={"kafka_bootstrap": f"{HOST}:{_port(settings, node)}"})
    try:
        await _ensure_ready_topic(here, node)
        sent = uuid.uuid4().bytes
        if await _read_back(here, sent) != sent:
            raise NotReady("another record was read than the one written")
    except (KafkaError, OperatorError, OSError) as error:
        raise NotReady(str(error)) from error


async def _ensure_ready_topic(settings: Settings, node: int) -> None:
    async with open_admin(settings, request_timeout_ms=5000) as admin:
        cluster = await admin.describe_cluster()
        if node not in {broker["node_id"] for broker in cluster["brokers"]}:
            raise NotReady(f"node {node} has not joined the cluster")
        if READY_TOPIC in await admin.list_topics():
            return
        config = {"retention.ms": "60000", "segment.bytes": str(1024**2)}
        topic = NewTopic(READY_TOPIC, 1, settings.kafka_brokers, topic_configs=config)
        answer = await admin.create_topics([topic])
        for _, code, message in answer.topic_errors:
            if code and for_code(code) is not TopicAlreadyExistsError:
                raise NotReady(message)


async def _read_back(settings: Settings, value: bytes) -> bytes:
    options = client_options(settings)
    async with AIOKafkaProducer(**options, acks="all", request_timeout_ms=5000) as producer:
        written = await producer.send_and_wait(READY_TOPIC, value)
    async with AIOKafkaConsumer(**options, request_timeout_ms=5000) as consumer:
        partition = TopicPartition(READY_TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, written.offset)
        record = await consumer.getone(partition)
    return bytes(record.value)


def _data(settings: Settings, node: int) -> Path:
    return settings.home / "kafka" / str(node)


def _version(classpath: Sequence[Path]) -> str:
    [server] = [jar.stem for jar in classpath if jar.name.startswith("kafka_")]
    return server.rpartition("-")[2]
