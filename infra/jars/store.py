"""The folder of installed files: one has its final name only when it is whole and has the locked content."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from infra.jars.archive import SUMS, is_whole, sha256, unpack
from infra.jars.lock import Artifact
from shared.errors import OperatorError

State = Literal["whole", "missing", "corrupted"]


class WrongContentError(OperatorError):
    pass


class Store:
    def __init__(self, cache: Path) -> None:
        self.folder = cache.absolute() / "jars"
        self.incoming = self.folder / ".incoming"

    def path(self, artifact: Artifact) -> Path:
        return self.folder / (artifact.stem if artifact.is_archive else artifact.file)

    def has(self, artifact: Artifact) -> bool:
        """A look at the size: fast enough for every start, and never fooled by a file cut short."""
        path = self.path(artifact)
        if artifact.is_archive:
            return (path / SUMS).is_file()
        return path.is_file() and path.stat().st_size == artifact.size

    def verify(self, artifact: Artifact) -> State:
        """A full reading: what `till install` and `till doctor` go by."""
        path = self.path(artifact)
        if not path.exists():
            return "missing"
        if artifact.is_archive:
            return "whole" if is_whole(path, artifact.unpacked) else "corrupted"
        return "whole" if sha256(path) == artifact.sha256 else "corrupted"

    def take_in(self, artifact: Artifact) -> bool:
        """Give a fetched file its place, if it has arrived and is the one that was locked."""
        fetched = self.incoming / artifact.file
        if not fetched.exists():
            return False
        if (got := sha256(fetched)) != artifact.sha256:
            fetched.unlink()
            raise WrongContentError(
                f"The repository's {artifact.file} is not the locked one: "
                f"expected sha256 {artifact.sha256}, got {got}.",
                "Try another TILL_JAR_REPOSITORY. Do not use this file before you know why it differs.",
            )
        if artifact.is_archive:
            self._place_unpacked(fetched, self.path(artifact))
        else:
            fetched.replace(self.path(artifact))
        return True

    def arrived(self, artifacts: list[Artifact]) -> int:
        """Bytes fetched so far; Ivy names a file `.part` until it is whole."""
        files = [self.incoming / artifact.file for artifact in artifacts]
        return sum(_size(Path(f"{file}.part")) or _size(file) for file in files)

    def _place_unpacked(self, archive: Path, target: Path) -> None:
        unpacked = Path(mkdtemp(dir=self.incoming))
        unpacked.chmod(0o755)
        unpack(archive, unpacked)
        if target.exists():
            target.rename(mkdtemp(dir=self.incoming))
        unpacked.rename(target)
        archive.unlink()

    @contextmanager
    def locked(self, wait: Callable[[], None]) -> Iterator[int]:
        """One installer at a time, whichever clone it runs in. Yields the descriptor that holds the lock."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            self.incoming.mkdir(exist_ok=True)
            yield file.fileno()
            shutil.rmtree(self.incoming)

    def clear_incoming(self) -> None:
        shutil.rmtree(self.incoming)
        self.incoming.mkdir()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # Ivy has just renamed it
        return 0
