"""Ports of this machine: checks that those of the settings are free, and finds free ones."""

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack

import psutil

from infra.local.servers.server import Server
from shared.errors import OperatorError
from shared.settings import HOST

# Below the range of local ports of outgoing connections (from 32768 on Linux, from 49152 elsewhere), so that no client
# gets a port between the moment it was found free and the moment its server binds it.
LOWEST, HIGHEST = 15_000, 32_000


def require_free(servers: Iterable[Server]) -> None:
    for server in servers:
        for setting, port in server.ports.items():
            if not _is_free(port):
                raise OperatorError(
                    f"Port {port} for {server.name} is in use{_user_of(port)}.",
                    f"Stop what uses it, or choose another port with {setting}.",
                )


def free_ports(count: int) -> list[int]:
    """Returns consecutive free ports from a random place, so that two runs at once are unlikely to collide."""
    for _ in range(1000):
        first = random.randrange(LOWEST, HIGHEST - count)
        ports = list(range(first, first + count))
        with ExitStack() as bound:
            try:
                for port in ports:
                    _bind(bound.enter_context(socket.socket()), port)
            except OSError:
                continue
            return ports
    raise OperatorError(f"No {count} free ports in a row were found between {LOWEST} and {HIGHEST}.")


def is_open(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(0.5)
        return client.connect_ex((HOST, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            _bind(candidate, port)
        except OSError:
            return False
    return not is_open(port)  # some systems allow two listeners, one of them on all addresses


def _bind(candidate: socket.socket, port: int) -> None:
    # As the servers do: lingering connections of a killed server do not occupy the port.
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    candidate.bind((HOST, port))


def _user_of(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    except psutil.Error:
        pass  # processes of other users cannot be inspected
    return ""
