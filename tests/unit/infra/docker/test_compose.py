"""Checks docker-compose.yml without an engine, and that each rule catches the bug it is for."""

import os
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from shared.settings import PREFIX
from tests.unit.infra.docker import compose_agreements as agreements
from tests.unit.infra.docker import compose_rules as rules
from tests.unit.infra.docker.compose_rules import Compose, Rule, resolved

ROOT = Path(__file__).parents[4]
COMPOSE: Compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
ALL = rules.RULES + agreements.AGREEMENTS
GONE = object()


def planted(path: str, value: object) -> Compose:
    """Returns a copy of the file with one thing changed or removed."""
    compose = deepcopy(COMPOSE)
    *way, last = path.split("/")
    node = compose
    for step in way:
        node = node[step]
    if value is GONE:
        del node[last]
    else:
        node[last] = value
    return compose


BUGS: list[tuple[Rule, str, object]] = [
    (rules.unknown_keys, "service", {}),
    (rules.unknown_keys, "services/shop/enviroment", {}),
    (rules.unknown_keys, "services/shop/healthcheck/start_delay", "1s"),
    (rules.wrong_types, "services/shop/ports", "8080:8080"),
    (rules.wrong_types, "services/shop/user", 10001),
    (rules.wrong_types, "services/kafka-1/environment/KAFKA_AUTO_CREATE_TOPICS_ENABLE", False),
    (rules.wrong_variables, "services/shop/environment/TILL_LOG_LEVEL", "$TILL_LOG_LEVEL"),
    (rules.wrong_variables, "services/shop/environment/TILL_LOG_LEVEL", "${TILL_LOG_LEVEL=INFO}"),
    (rules.wrong_ports, "services/shop/ports", ["127.0.0.1:8080"]),
    (rules.wrong_ports, "services/shop/ports", ["8080:8080"]),
    (rules.wrong_ports, "services/shop/ports", ["127.0.0.1:80800:8080"]),
    (rules.wrong_ports, "services/shop/ports", ["127.0.0.1:9093:8080"]),
    (rules.wrong_dependencies, "services/shop/depends_on/kafka", {"condition": "service_started"}),
    (rules.wrong_dependencies, "services/shop/depends_on/postgres", {"condition": "service_ready"}),
    (rules.wrong_dependencies, "services/shop/depends_on/topics", {"condition": "service_started"}),
    (rules.wrong_dependencies, "services/kafka-2/healthcheck", {"interval": "5s"}),
    (rules.unawaited, "services/shop/depends_on/topics", GONE),
    (rules.cycles, "services/kafka-1/depends_on", {"shop": {"condition": "service_healthy"}}),
    (rules.dangling_references, "services/postgres/volumes", ["pgdata:/var/lib/postgresql"]),
    (rules.dangling_references, "volumes/spare", None),
    (rules.dangling_references, "services/shop/networks", ["backend"]),
    (rules.dangling_references, "services/shop/secrets", ["database"]),
    (rules.unpinned_images, "services/postgres/image", "postgres:latest"),
    (rules.unpinned_images, "services/postgres/image", "postgres"),
    (rules.unpinned_images, "services/postgres/image", "postgres:18"),
    (rules.missing_limits, "services/registry/deploy", GONE),
    (rules.missing_limits, "services/registry/deploy/resources/limits/cpus", "64"),
    (rules.missing_limits, "services/registry/deploy/resources/limits/memory", "lots"),
    (rules.root_or_privileged, "services/shop/user", GONE),
    (rules.root_or_privileged, "services/shop/user", "0:0"),
    (rules.root_or_privileged, "services/postgres/cap_drop", []),
    (rules.root_or_privileged, "services/postgres/privileged", True),
    (rules.root_or_privileged, "services/postgres/security_opt", []),
    (rules.missing_health, "services/registry/healthcheck", GONE),
    (rules.missing_health, "services/registry/healthcheck/test", ["curl", "-f"]),
    (rules.missing_health, "services/registry/healthcheck/interval", "often"),
    (rules.missing_health, "services/topics/healthcheck", GONE),
    (rules.missing_restart_policies, "services/shop/restart", GONE),
    (rules.missing_restart_policies, "services/shop/restart", "sometimes"),
    (rules.quiet_secrets, "services/postgres/environment/POSTGRES_PASSWORD", "hunter2"),
    (rules.quiet_secrets, "services/shop/environment/TILL_AUTH_SECRET", "${TILL_AUTH_SECRET:-hunter2}"),
    (agreements.unknown_settings, "services/shop/environment/TILL_KAFKA_BOOTSTRAP_SERVERS", "kafka-1:19092"),
    (agreements.unknown_settings, "services/shop/ports", ["127.0.0.1:${TILL_HTTP_PORT:-8080}:8080"]),
    (agreements.invalid_settings, "services/shop/environment/TILL_LOG_LEVEL", "LOUD"),
    (agreements.missing_secrets, "services/shop/environment/TILL_MASTER_KEY", GONE),
    (agreements.missing_secrets, "services/shop/environment/TILL_MASTER_KEY", "${TILL_MASTER_KEY:-dev-only}"),
    (agreements.missing_secrets, "services/shop/environment/TILL_AUTH_SECRET", "${TILL_AUTH_SECRET:-dev-only}"),
    (agreements.missing_secrets, "services/shop/environment/TILL_DATABASE_URL", "postgresql://postgres/till"),
    (agreements.other_ports_than_settings, "services/kafka-2/ports", ["127.0.0.1:9193:9092"]),
    (agreements.other_ports_than_settings, "services/shop/ports", ["127.0.0.1:8080:8080"]),
    (
        agreements.other_ports_than_settings,
        "services/postgres/ports",
        ["127.0.0.1:${TILL_POSTGRES_PORT:-5432}:5432"],
    ),
    (
        agreements.unreachable_listeners,
        "services/kafka-2/environment/KAFKA_ADVERTISED_LISTENERS",
        "INTERNAL://kafka-2:19092,EXTERNAL://127.0.0.1:9092",
    ),
    (
        agreements.unreachable_listeners,
        "services/kafka-2/environment/KAFKA_ADVERTISED_LISTENERS",
        "INTERNAL://kafka-1:19092,EXTERNAL://127.0.0.1:9093",
    ),
    (
        agreements.unreachable_listeners,
        "services/kafka-2/environment/KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    ),
    (agreements.split_quorum, "services/kafka-3/environment/KAFKA_NODE_ID", 2),
    (agreements.split_quorum, "services/kafka-3/environment/CLUSTER_ID", "another"),
    (
        agreements.split_quorum,
        "services/kafka-3/environment/KAFKA_CONTROLLER_QUORUM_VOTERS",
        "1@kafka-1:19093",
    ),
    (agreements.split_quorum, "services/kafka-3/environment/KAFKA_LOG_DIRS", "/tmp/kafka"),
    (agreements.thin_replication, "services/kafka-3", GONE),
    (agreements.thin_replication, "services/kafka-3/environment/KAFKA_MIN_INSYNC_REPLICAS", 1),
    (agreements.thin_replication, "services/kafka-3/environment/KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", 1),
    (agreements.thin_replication, "services/kafka-3/environment/KAFKA_DEFAULT_REPLICATION_FACTOR", GONE),
    (agreements.undeclared_topics, "services/kafka-1/environment/KAFKA_AUTO_CREATE_TOPICS_ENABLE", GONE),
    (agreements.unprepared_shop, "services/shop/depends_on/topics", GONE),
    (agreements.unprepared_shop, "services/shop/depends_on/schemas", GONE),
    (agreements.wrong_addresses, "services/shop/environment/TILL_KAFKA_BOOTSTRAP", "kafka-1:9092"),
    (
        agreements.wrong_addresses,
        "services/shop/environment/TILL_REGISTRY_URL",
        "http://registry:8081/apis/ccompat/v7",
    ),
    (
        agreements.wrong_addresses,
        "services/shop/environment/TILL_DATABASE_URL",
        "postgresql://till:hush@postgres:5432/till",
    ),
    (agreements.wrong_addresses, "services/topics/environment/TILL_KAFKA_BROKERS", 1),
    (
        agreements.other_databases,
        "services/registry/environment/APICURIO_DATASOURCE_URL",
        "jdbc:postgresql://db/x",
    ),
    (
        agreements.other_databases,
        "services/registry/environment/APICURIO_DATASOURCE_USERNAME",
        "registry",
    ),
    (agreements.other_databases, "services/postgres/environment/POSTGRES_DB", "shop"),
    (agreements.other_databases, "services/postgres/command", ["postgres", "-cwal_level=replica"]),
    (agreements.missing_commands, "services/shop/command", ["python", "-m", "services.market"]),
    (agreements.missing_commands, "services/topics/command", ["till", "tropics"]),
    (agreements.missing_commands, "services/shop/command", GONE),
    (agreements.missing_files, "services/shop/build/dockerfile", "Dockerfile"),
    (
        agreements.missing_files,
        "services/postgres/volumes",
        ["./infra/docker/schema.sql:/schema.sql"],
    ),
    (agreements.other_versions, "services/kafka-1/image", "apache/kafka:4.1.0"),
    (agreements.other_versions, "services/registry/image", "apicurio/apicurio-registry:3.3.0"),
    (agreements.other_versions, "services/postgres/image", "postgres:17.6"),
    (agreements.other_versions, "services/shop/image", "till-roll:0.0.1"),
]


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.__name__)
def test_the_compose_file_keeps_the_rule(rule: Rule) -> None:
    assert list(rule(COMPOSE)) == []


@pytest.mark.parametrize(("rule", "path", "value"), BUGS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_the_bug_it_is_for(rule: Rule, path: str, value: object) -> None:
    assert list(rule(planted(path, value))) != []


def test_every_rule_has_a_bug_to_catch() -> None:
    assert {rule.__name__ for rule, _, _ in BUGS} == {rule.__name__ for rule in ALL}


def test_variables_are_read_as_compose_reads_them() -> None:
    assert resolved("${A:-one}-${B-two}-${C}-${D:?set D}") == "one-two--"
