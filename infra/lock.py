"""A lock between processes: a file that the kernel locks for one holder at a time.

The kernel releases the lock when its holder ends, however it ends, so a lock is never stale. The file itself stays.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_lock(file: Path) -> Iterator[Callable[[], bool]]:
    """Yields a function that tries to take the lock, without waiting, and says whether it did.

    The end of the block releases the lock. Child processes do not inherit it.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        yield take
    finally:
        os.close(descriptor)
