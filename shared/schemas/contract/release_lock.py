"""Guards released schema files: `schemas/released.lock` holds the checksum of each, in the format of sha256sum.

Shared types are locked too, because they are inlined in every event that uses them.
"""

import hashlib
from collections.abc import Collection
from importlib.resources.abc import Traversable
from pathlib import Path

LOCK = "released.lock"


def locked_checksums(root: Traversable) -> dict[str, str]:
    """Returns the checksum of each released file by its path in `schemas/`."""
    file = root / LOCK
    lines = file.read_text().splitlines() if file.is_file() else []
    return {path: checksum for checksum, path in (line.split("  ", 1) for line in lines)}


def current_checksums(root: Traversable) -> dict[str, str]:
    """Returns the checksum of each schema file as it is now, by its path in `schemas/`."""
    return {
        f"{folder.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".avsc")
    }


def unreleased_files(root: Traversable) -> list[str]:
    return sorted(current_checksums(root).keys() - locked_checksums(root).keys())


def changed_files(root: Traversable) -> list[str]:
    current = current_checksums(root)
    return [path for path, checksum in locked_checksums(root).items() if path in current and current[path] != checksum]


def deleted_files(root: Traversable) -> list[str]:
    return sorted(locked_checksums(root).keys() - current_checksums(root).keys())


def release(root: Path, folders: Collection[str] = ()) -> list[str]:
    """Locks new files, limited to `folders` if any are named, and returns their paths. Locked entries never change."""
    added = [path for path in unreleased_files(root) if not folders or path.partition("/")[0] in folders]
    entries = locked_checksums(root) | {
        path: checksum for path, checksum in current_checksums(root).items() if path in added
    }
    (root / LOCK).write_text("".join(f"{entries[path]}  {path}\n" for path in sorted(entries)))
    return added
