"""The Java parts, by bundle: where they are, and how they get there. What they are is in jars.lock.toml."""

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from infra.jars import ivy
from infra.jars.ivy import ivy_jar
from infra.jars.lock import LOCK, Artifact, read_lock
from infra.jars.store import Store, WrongContentError
from infra.java import find_java
from shared.errors import OperatorError
from shared.settings import Settings

__all__ = ["install", "ivy_jar", "jars", "registry_home"]

MB = 1_000_000

Say = Callable[[str], None]
Progress = Callable[[int, int], None]


def jars(settings: Settings, bundle: Literal["kafka", "spark"]) -> list[Path]:
    """A complete classpath, always in the order of the lock: class data archives depend on it."""
    return _installed(settings, bundle)


def registry_home(settings: Settings) -> Path:
    [folder] = _installed(settings, "registry")
    return folder


def install(
    settings: Settings,
    lock: Path = LOCK,
    say: Say = lambda _: None,
    progress: Progress = lambda _done, _total: None,
) -> list[Artifact]:
    """Fetch what is missing or corrupted, and return it. `progress` hears bytes, `say` what is unusual."""
    store = Store(settings.cache)
    artifacts = [artifact for bundle in read_lock(lock).values() for artifact in bundle]
    try:
        if all(store.verify(artifact) == "whole" for artifact in artifacts):
            return []
        with store.locked(lambda: say("Another install is running; waiting for it.")) as held:
            wanted = _wanted(store, artifacts, say)
            _fetch(settings, store, wanted, held, progress)
            return wanted
    except OSError as failed:
        raise OperatorError(
            f"Could not install into {store.folder}: {failed.strerror} ({failed.filename}).",
            "Mend that, or set another TILL_CACHE.",
        ) from failed


def _installed(settings: Settings, bundle: str) -> list[Path]:
    store, artifacts = Store(settings.cache), read_lock()[bundle]
    absent = [artifact.file for artifact in artifacts if not store.has(artifact)]
    if absent:
        raise OperatorError(
            f"{len(absent)} of the {len(artifacts)} files of {bundle} are missing or cut short "
            f"in {store.folder}: {absent[0]}{', ...' if absent[1:] else ''}",
            "till install",
        )
    return [store.path(artifact) for artifact in artifacts]


def _wanted(store: Store, artifacts: Iterable[Artifact], say: Say) -> list[Artifact]:
    wanted = []
    for artifact in artifacts:
        state = store.verify(artifact)
        if state == "corrupted":
            say(f"{store.path(artifact)} is corrupted. Fetching it again.")
        if state != "whole":
            wanted.append(artifact)
    return wanted


def _require_room(store: Store, wanted: list[Artifact]) -> None:
    # For a moment an archive is there twice, packed and unpacked.
    needed = sum(artifact.size * 22 // 10 if artifact.is_archive else artifact.size for artifact in wanted)
    free = shutil.disk_usage(store.folder).free
    if free < needed:
        raise OperatorError(
            f"{needed // MB} MB are needed in {store.folder}, and only {free // MB} MB are free.",
            "Make room, or set another TILL_CACHE.",
        )


def _fetch(settings: Settings, store: Store, wanted: list[Artifact], held: int, progress: Progress) -> None:
    java = find_java(settings)
    total = sum(artifact.size for artifact in wanted)
    pending = _left_to_fetch(store, wanted)
    _require_room(store, pending)

    def tick() -> None:
        progress(total - sum(artifact.size for artifact in pending) + store.arrived(pending), total)

    # A repository that drops a request now and then is asked again; one that gives nothing is not.
    while pending:
        log = ivy.fetch(java, pending, store.incoming, settings.jar_repository, [held], tick)
        left = [artifact for artifact in pending if not store.take_in(artifact)]
        if len(left) == len(pending):
            _require_room(store, left)  # on a full disk, Ivy cannot even log why
            raise OperatorError(
                f"{left[0].coordinate} could not be fetched: {ivy.reason(log)}",
                "Settings that matter here: TILL_JAR_REPOSITORY (a mirror), https_proxy, SSL_CERT_FILE.",
            )
        pending = left
    progress(total, total)


def _left_to_fetch(store: Store, wanted: list[Artifact]) -> list[Artifact]:
    """After an interrupted install: take in what had arrived whole, and let nothing else of it remain."""
    left = []
    for artifact in wanted:
        with suppress(WrongContentError):
            if store.take_in(artifact):
                continue
        left.append(artifact)
    store.clear_incoming()
    return left
