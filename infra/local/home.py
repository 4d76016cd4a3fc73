"""The folder that holds all state: its layout, the lock on it, and what `till up` chose and generated."""

import asyncio
import base64
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from pydantic import SecretStr

from shared.errors import OperatorError
from shared.settings import PREFIX, Settings

LEAST_FREE = 256 * 1024**2
HEADING = "# Written by `till up`. Without these secrets the data of this home cannot be read.\n"

GENERATED: dict[str, Callable[[], str]] = {
    "database_password": lambda: secrets.token_urlsafe(24),
    "auth_secret": lambda: secrets.token_urlsafe(48),
    "master_key": lambda: base64.b64encode(secrets.token_bytes(32)).decode(),
}


def run_folder(home: Path) -> Path:
    return home / "run"


def log_folder(home: Path) -> Path:
    return home / "logs"


def was_used(home: Path) -> bool:
    return _lock_file(home).exists()


def _lock_file(home: Path) -> Path:
    return run_folder(home) / "lock"


@contextmanager
def writable(home: Path) -> Iterator[None]:
    """A disk that is full or may not be written is the operator's to mend, whatever was being written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OperatorError(
                f"No space is left for {error.filename or home}.", "Make room, or set another TILL_HOME."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise OperatorError(
                f"{error.filename or home} cannot be written: {error.strerror}.",
                "Give this user the folder, or set another TILL_HOME.",
            ) from error
        raise


@asynccontextmanager
async def exclusive(home: Path, waiting: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """One `up` or `down` at a time. The kernel drops the lock with its holder, so none is ever stale."""
    with writable(home):
        run_folder(home).mkdir(parents=True, exist_ok=True)
        lock = os.open(_lock_file(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(lock):
            waiting()
            while not _locked(lock):
                await asyncio.sleep(0.1)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def furnish(settings: Settings) -> Settings:
    """Make the home, remember its choices in till.env, and return the settings with its secrets in them."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    settings = Settings.load(**given)  # another `up` may have written till.env since
    with writable(settings.home):
        log_folder(settings.home).mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(settings.home).free
        if free < LEAST_FREE:
            raise OperatorError(
                f"Only {free // 1024**2} MB are free in {settings.home}; {LEAST_FREE // 1024**2} MB are needed.",
                "Make room, or set another TILL_HOME.",
            )
        chosen: dict[str, str | int] = {"kafka_brokers": settings.kafka_brokers, "split": int(settings.split)}
        for name, generate in GENERATED.items():
            secret: SecretStr = getattr(settings, name)
            chosen[name] = secret.get_secret_value() or generate()
        _remember(settings.home / "till.env", chosen)
    return Settings.load(**(given | chosen))


def _remember(file: Path, chosen: Mapping[str, str | int]) -> None:
    before = file.read_text() if file.exists() else HEADING
    names = {f"{PREFIX}{name.upper()}" for name in chosen}
    kept = [line for line in before.splitlines() if line.partition("=")[0] not in names]
    after = "\n".join([*kept, *(f"{PREFIX}{name.upper()}={value}" for name, value in chosen.items())]) + "\n"
    if after != before:
        write_whole(file, after, mode=0o600)


def write_whole(file: Path, content: str, mode: int = 0o644) -> None:
    """All of it or nothing, whatever is killed meanwhile."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
