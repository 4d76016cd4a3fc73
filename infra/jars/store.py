"""The folder of installed files. A file gets its final name only when it is complete and has the locked content."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from filelock import FileLock, Timeout

from infra.jars.archive import SUMS, is_whole, sha256, unpack
from infra.jars.lock import Artifact
from shared.errors import OperatorError

State = Literal["whole", "missing", "corrupted"]
WAIT_SECONDS = 0.1


class JarStore:
    def __init__(self, cache: Path) -> None:
        self.folder = cache.absolute() / "jars"
        self.incoming = self.folder / ".incoming"

    def path(self, artifact: Artifact) -> Path:
        return self.folder / (artifact.stem if artifact.is_archive else artifact.file)

    def has(self, artifact: Artifact) -> bool:
        """Compares the size only: fast enough for every start, and enough to notice a file cut short."""
        path = self.path(artifact)
        if artifact.is_archive:
            return (path / SUMS).is_file()
        return path.is_file() and path.stat().st_size == artifact.size

    def verify(self, artifact: Artifact) -> State:
        """Reads and checks every byte, for `till install` and `till doctor`."""
        path = self.path(artifact)
        if not path.exists():
            return "missing"
        if artifact.is_archive:
            return "whole" if is_whole(path, artifact.unpacked) else "corrupted"
        return "whole" if sha256(path) == artifact.sha256 else "corrupted"

    def take_in(self, artifact: Artifact, file: Path) -> None:
        """Moves a downloaded file to its place, or refuses it if its content is not the locked one."""
        if (got := sha256(file)) != artifact.sha256:
            file.unlink()
            raise OperatorError(
                f"The repository's {artifact.file} is not the locked one: "
                f"expected sha256 {artifact.sha256}, got {got}.",
                "Try another TILL_JAR_REPOSITORY. Do not use this file before you know why it differs.",
            )
        if artifact.is_archive:
            self._unpack_in_place(file, self.path(artifact))
        else:
            file.replace(self.path(artifact))

    def _unpack_in_place(self, archive: Path, target: Path) -> None:
        unpacked = Path(mkdtemp(dir=self.incoming))
        unpacked.chmod(0o755)
        unpack(archive, unpacked)
        if target.exists():
            target.rename(mkdtemp(dir=self.incoming))
        unpacked.rename(target)
        archive.unlink()

    @contextmanager
    def locked(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Lets one installer at a time work here, whichever clone it runs in. `waiting` is called if it has to wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock", mode=0o600, poll_interval=WAIT_SECONDS)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            waiting()
            lock.acquire()
        try:
            shutil.rmtree(self.incoming, ignore_errors=True)  # left by an installer that was killed
            self.incoming.mkdir()
            yield
        finally:
            shutil.rmtree(self.incoming, ignore_errors=True)
            lock.release()
