"""Finds the installed files of a bundle: what Kafka, Spark and the registry are started with."""

from pathlib import Path
from typing import Literal

from infra.jars.lock import read_lock
from infra.jars.store import JarStore
from infra.settings import Settings
from shared.errors import OperatorError


def jars(settings: Settings, bundle: Literal["kafka", "spark"]) -> list[Path]:
    """Returns a complete classpath in the order of the lock, on which class data archives depend."""
    return _installed(settings, bundle)


def registry_home(settings: Settings) -> Path:
    [folder] = _installed(settings, "registry")
    return folder


def _installed(settings: Settings, bundle: str) -> list[Path]:
    store, artifacts = JarStore(settings.cache), read_lock()[bundle]
    absent = [artifact.file for artifact in artifacts if not store.has(artifact)]
    if absent:
        raise OperatorError(
            f"{len(absent)} of the {len(artifacts)} files of {bundle} are missing or cut short "
            f"in {store.folder}: {absent[0]}{', ...' if absent[1:] else ''}",
            "till install",
        )
    return [store.path(artifact) for artifact in artifacts]
