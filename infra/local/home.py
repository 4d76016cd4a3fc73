"""The folder that holds all state: its layout, the lock on it, and what `till up` chose and generated."""

import base64
import errno
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from filelock import AsyncFileLock, Timeout
from pydantic import SecretStr

from infra.settings import Settings
from shared.errors import OperatorError
from shared.settings import PREFIX

MINIMUM_FREE_BYTES = 256 * 1024**2
WAIT_SECONDS = 0.1
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
    """Turns a full or read-only disk, whatever was being written, into an error that says what to do."""
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
                "Let this user write there, or set another TILL_HOME.",
            ) from error
        raise


@asynccontextmanager
async def exclusive(home: Path, waiting: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Lets one `up` or `down` at a time work in this home. `waiting` is called if this one has to wait.

    The kernel releases the lock when its holder ends, however it ends. The file itself stays.
    """
    lock = AsyncFileLock(_lock_file(home), mode=0o600, poll_interval=WAIT_SECONDS)
    with writable(home):
        run_folder(home).mkdir(parents=True, exist_ok=True)
        try:
            await lock.acquire(blocking=False)
        except Timeout:
            waiting()
            await lock.acquire()
    try:
        yield
    finally:
        await lock.release()


def furnish(settings: Settings) -> Settings:
    """Creates the home, remembers its choices in till.env, and returns the settings with its secrets."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    settings = Settings.load(**given)  # another `up` may have written till.env since
    with writable(settings.home):
        log_folder(settings.home).mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(settings.home).free
        if free < MINIMUM_FREE_BYTES:
            needed = MINIMUM_FREE_BYTES // 1024**2
            raise OperatorError(
                f"Only {free // 1024**2} MB are free in {settings.home}; {needed} MB are needed.",
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
    others = [line for line in before.splitlines() if line.partition("=")[0] not in names]
    after = "\n".join([*others, *(f"{PREFIX}{name.upper()}={value}" for name, value in chosen.items())]) + "\n"
    if after != before:
        write_whole(file, after, mode=0o600)


def write_whole(file: Path, content: str, mode: int = 0o644) -> None:
    """Writes all of the content or nothing, even if this process is killed."""
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
