"""Installs the locked files: downloads what is missing or corrupted, checks it, and puts it in its place."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from infra.jars.lock import LOCK, Artifact, read_lock
from infra.jars.repository import Repository, open_repository
from infra.jars.store import JarStore
from infra.settings import Settings
from shared.errors import OperatorError

MB = 1_000_000
TICK_SECONDS = 0.2

Say = Callable[[str], None]
Progress = Callable[[int, int], None]


def install(
    settings: Settings,
    lock: Path = LOCK,
    say: Say = lambda _: None,
    progress: Progress = lambda _done, _total: None,
) -> list[Artifact]:
    """Downloads what is missing or corrupted, and returns it.

    `progress` is called with the bytes so far and in total, `say` with a sentence about anything unusual.
    """
    store = JarStore(settings.cache)
    artifacts = [artifact for bundle in read_lock(lock).values() for artifact in bundle]
    try:
        if all(store.verify(artifact) == "whole" for artifact in artifacts):
            return []
        with store.locked(lambda: say("Another install is running; waiting for it.")):
            wanted = _wanted(store, artifacts, say)
            _require_room(store, wanted)
            asyncio.run(_download_all(settings, store, wanted, progress))
            return wanted
    except OSError as failed:
        raise OperatorError(
            f"Could not install into {store.folder}: {failed.strerror} ({failed.filename}).",
            "Fix that, or set another TILL_CACHE.",
        ) from failed


def _wanted(store: JarStore, artifacts: Iterable[Artifact], say: Say) -> list[Artifact]:
    wanted = []
    for artifact in artifacts:
        state = store.verify(artifact)
        if state == "corrupted":
            say(f"{store.path(artifact)} is corrupted. Fetching it again.")
        if state != "whole":
            wanted.append(artifact)
    return wanted


def _require_room(store: JarStore, wanted: list[Artifact]) -> None:
    # An archive takes its space twice for a moment, packed and unpacked.
    needed = sum(artifact.size * 22 // 10 if artifact.is_archive else artifact.size for artifact in wanted)
    free = shutil.disk_usage(store.folder).free
    if free < needed:
        raise OperatorError(
            f"{needed // MB} MB are needed in {store.folder}, and only {free // MB} MB are free.",
            "Make room, or set another TILL_CACHE.",
        )


async def _download_all(settings: Settings, store: JarStore, wanted: list[Artifact], progress: Progress) -> None:
    """Downloads in parallel. Each file is checked and kept as soon as it is complete, even if another one fails."""
    total = sum(artifact.size for artifact in wanted)
    received: Counter[Artifact] = Counter()

    async def report() -> None:
        while True:
            progress(min(received.total(), total), total)
            await asyncio.sleep(TICK_SECONDS)

    async def download(repository: Repository, artifact: Artifact) -> None:
        file = store.incoming / artifact.file
        await repository.download(artifact, file, lambda count: received.update({artifact: count}))
        await asyncio.to_thread(store.take_in, artifact, file)

    try:
        async with open_repository(settings.jar_repository) as repository, asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(report())
            async with asyncio.TaskGroup() as downloads:
                for artifact in wanted:
                    downloads.create_task(download(repository, artifact))
            reporting.cancel()
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    progress(total, total)


def _first(failure: BaseException) -> BaseException:
    return _first(failure.exceptions[0]) if isinstance(failure, BaseExceptionGroup) else failure
