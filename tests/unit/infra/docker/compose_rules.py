"""Rules for a compose file: those of the specification that need no engine, and our own.

A rule is a function from the parsed file to the problems it sees.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Compose = dict[str, Any]
Rule = Callable[[Compose], Iterator[str]]

TOP_LEVEL = {"name", "services", "networks", "volumes", "secrets", "configs", "include", "models"}
SERVICE_KEYS: dict[tuple[type, ...], str] = {
    (str,): """cgroup cgroup_parent container_name cpuset domainname hostname image ipc isolation mac_address
        network_mode pid platform pull_policy pull_refresh_after restart runtime stop_grace_period stop_signal
        user userns_mode uts working_dir""",
    (bool,): "attach init oom_kill_disable privileged read_only stdin_open tty use_api_socket",
    (int, float, str): """cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares
        cpus mem_limit mem_reservation mem_swappiness memswap_limit oom_score_adj pids_limit scale
        shm_size""",
    (list,): """cap_add cap_drop configs device_cgroup_rules devices dns_opt expose external_links group_add
        links ports post_start pre_stop profiles secrets security_opt volumes volumes_from""",
    (dict,): "blkio_config credential_spec deploy develop healthcheck logging provider storage_opt ulimits",
    (list, dict): "annotations depends_on environment extra_hosts labels models networks sysctls",
    (str, list): "command dns dns_search entrypoint env_file gpus label_file tmpfs",
    (str, dict): "build extends",
}
TYPES = {key: types for types, keys in SERVICE_KEYS.items() for key in keys.split()}
NESTED_KEYS = {
    "build": """additional_contexts args cache_from cache_to context dockerfile dockerfile_inline entitlements
        extra_hosts isolation labels network no_cache platforms privileged pull secrets shm_size ssh tags
        target ulimits""",
    "deploy": """endpoint_mode labels mode placement replicas resources restart_policy rollback_config
        update_config""",
    "healthcheck": "disable interval retries start_interval start_period test timeout",
}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
DURATION = re.compile(r"(\d+(\.\d+)?(us|ms|s|m|h))+")
MEMORY = re.compile(r"\d+(\.\d+)?\s*([kmg]b?|b)?", re.IGNORECASE)
PORT = re.compile(r"(?:(?P<ip>[\d.]+):)?(?:(?P<host>\d+):)?(?P<container>\d+)(?:/(?:tcp|udp))?")
PINNED = re.compile(r"[\w./-]+:\d+(\.\d+)+[\w.-]*(@sha256:[0-9a-f]{64})?")
SECRET = re.compile("PASSWORD|SECRET|TOKEN|_KEY$")
VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<operator>:?[-?])(?P<rest>[^{}]*))?\})")


def services(compose: Compose) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from compose["services"].items()


def resolved(value: object) -> str:
    """Returns the text with every variable at its default, as compose reads it when nothing is set."""
    return VARIABLE.sub(lambda m: (m["rest"] or "") if m["operator"] in (":-", "-") else "", str(value))


def strings(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)
    elif isinstance(node, str):
        yield node


def is_one_shot(service: dict[str, Any]) -> bool:
    return bool(service.get("restart") == "no")


def unknown_keys(compose: Compose) -> Iterator[str]:
    yield from (f"{key}" for key in compose if key not in TOP_LEVEL and not key.startswith("x-"))
    for name, service in services(compose):
        yield from (f"{name}.{key}" for key in service if key not in TYPES and not key.startswith("x-"))
        for outer, known in NESTED_KEYS.items():
            inner = service.get(outer)
            if isinstance(inner, dict):
                yield from (f"{name}.{outer}.{key}" for key in inner if key not in known.split())


def wrong_types(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        for key, value in service.items():
            types = TYPES.get(key, (object,))
            stray = isinstance(value, bool) and int in types  # to Python, a bool is an int
            if not isinstance(value, types) or stray:
                yield f"{name}.{key} is {type(value).__name__}"
        for key, value in service.get("environment", {}).items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                yield f"{name}.environment.{key}: quote it, YAML reads {value!r}"


def wrong_variables(compose: Compose) -> Iterator[str]:
    for text in strings(compose):
        if "$" in VARIABLE.sub("", text):
            yield f"{text!r} is no ${{NAME}}, ${{NAME:-default}} or ${{NAME:?message}}"


def wrong_ports(compose: Compose) -> Iterator[str]:
    taken: dict[str, str] = {}
    for name, service in services(compose):
        for port in service.get("ports", []):
            match = PORT.fullmatch(resolved(port))
            if not match or not all(0 < int(p) < 65536 for p in (match["host"], match["container"]) if p):
                yield f"{name}: {port!r} is no port"
            elif match["host"] is None:
                yield f"{name}: {port!r} is published on a port of chance"
            elif match["ip"] != "127.0.0.1":
                yield f"{name}: {port!r} is open to the network"
            elif match["host"] in taken:
                yield f"{name} and {taken[match['host']]} both publish {match['host']}"
            else:
                taken[match["host"]] = name


def wrong_dependencies(compose: Compose) -> Iterator[str]:
    all_services = compose["services"]
    for name, service in services(compose):
        for target, how in service.get("depends_on", {}).items():
            condition = how.get("condition")
            if target not in all_services:
                yield f"{name} depends on {target}, which does not exist"
                continue
            health = all_services[target].get("healthcheck", {})
            if condition not in CONDITIONS:
                yield f"{name} depends on {target} by {condition}"
            elif condition == "service_healthy" and not health.get("test"):
                yield f"{name} waits for the health of {target}, which has no health check"
            elif (condition == "service_completed_successfully") != is_one_shot(all_services[target]):
                yield f"{name} depends on {target} by {condition}"


def unawaited(compose: Compose) -> Iterator[str]:
    """`up --wait` calls a container's end a failure, unless another one waits for it."""
    awaited = {target for _, service in services(compose) for target in service.get("depends_on", {})}
    for name, service in services(compose):
        if is_one_shot(service) and name not in awaited:
            yield f"{name} runs once and nobody waits for it"


def cycles(compose: Compose) -> Iterator[str]:
    def reaches(start: str, goal: str, seen: frozenset[str]) -> bool:
        targets = compose["services"].get(start, {}).get("depends_on", {})
        return any(t == goal or (t not in seen and reaches(t, goal, seen | {t})) for t in targets)

    for name, _ in services(compose):
        if reaches(name, name, frozenset()):
            yield f"{name} waits for itself"


def dangling_references(compose: Compose) -> Iterator[str]:
    for kind in ("volumes", "networks", "secrets", "configs"):
        declared = set(compose.get(kind) or {})
        used = {
            reference
            for _, service in services(compose)
            for entry in service.get(kind, [])
            if (reference := str(entry).partition(":")[0]) and reference[0] not in "./"
        }
        yield from (f"{kind}: {name} is not declared" for name in used - declared)
        yield from (f"{kind}: {name} is not used" for name in declared - used)


def unpinned_images(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        if not PINNED.fullmatch(service.get("image", "")):
            yield f"{name}: {service.get('image')} has no version"


def missing_limits(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        if not MEMORY.fullmatch(str(limits.get("memory", ""))):
            yield f"{name} has no limit of memory"
        try:
            # The engine refuses a limit above what the machine has, and a machine may have a single core.
            if not 0 < float(limits.get("cpus", 0)) <= 1:
                yield f"{name} has no limit of CPU"
        except ValueError:
            yield f"{name}: {limits['cpus']} is no number of CPUs"


def root_or_privileged(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        if str(service.get("user", "root")).partition(":")[0] in ("", "0", "root"):
            yield f"{name} runs as root"
        if service.get("privileged") or service.get("cap_add") or service.get("cap_drop") != ["ALL"]:
            yield f"{name} keeps privileges"
        if "no-new-privileges:true" not in service.get("security_opt", []):
            yield f"{name} may gain privileges"


def missing_health(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        health = service.get("healthcheck", {})
        test = health.get("test")
        if is_one_shot(service):
            if not health.get("disable"):
                yield f"{name} runs once; a health check of its image must be off"
        elif not isinstance(test, list) or test[0] not in ("CMD", "CMD-SHELL") or len(test) < 2:
            yield f"{name} has no health check"
        for key in ("interval", "timeout", "start_period", "start_interval"):
            if key in health and not DURATION.fullmatch(str(health[key])):
                yield f"{name}.healthcheck.{key}: {health[key]!r} is no duration"


def missing_restart_policies(compose: Compose) -> Iterator[str]:
    for name, service in services(compose):
        if not re.fullmatch(r"no|always|unless-stopped|on-failure(:\d+)?", str(service.get("restart"))):
            yield f"{name} has no restart policy"


def quiet_secrets(compose: Compose) -> Iterator[str]:
    """A password is written into the file only as a default that says it is for development."""
    for name, service in services(compose):
        for key, value in service.get("environment", {}).items():
            defaults = {m["name"]: m["rest"] or "" for m in VARIABLE.finditer(str(value)) if m["operator"] == ":-"}
            for variable, default in defaults.items():
                if re.search("PASSWORD|SECRET", variable) and not default.startswith("dev-only"):
                    yield f"{name}.environment.{key}: the default of {variable} passes for a real one"
            if re.search("PASSWORD|SECRET", key) and not VARIABLE.search(str(value)):
                yield f"{name}.environment.{key} is written into the file"


RULES: list[Rule] = [
    unknown_keys,
    wrong_types,
    wrong_variables,
    wrong_ports,
    wrong_dependencies,
    unawaited,
    cycles,
    dangling_references,
    unpinned_images,
    missing_limits,
    root_or_privileged,
    missing_health,
    missing_restart_policies,
    quiet_secrets,
]
