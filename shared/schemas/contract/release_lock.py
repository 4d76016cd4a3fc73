"""What was released does not change: `schemas/released.lock` has the checksum of each file, as sha256sum writes it.

Shared types are in it too: they are written out in every event that names them.
"""

import hashlib
from collections.abc import Collection
from importlib.resources.abc import Traversable
from pathlib import Path

LOCK = "released.lock"


def locked(root: Traversable) -> dict[str, str]:
    """The checksum of each released file, by its path in `schemas/`."""
    file = root / LOCK
    lines = file.read_text().splitlines() if file.is_file() else []
    return {path: checksum for checksum, path in (line.split("  ", 1) for line in lines)}


def present(root: Traversable) -> dict[str, str]:
    """The same of every schema that is there now."""
    return {
        f"{folder.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for folder in root.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".avsc")
    }


def unreleased(root: Traversable) -> list[str]:
    return sorted(present(root).keys() - locked(root).keys())


def changed(root: Traversable) -> list[str]:
    now = present(root)
    return [path for path, checksum in locked(root).items() if path in now and now[path] != checksum]


def deleted(root: Traversable) -> list[str]:
    return sorted(locked(root).keys() - present(root).keys())


def release(root: Path, folders: Collection[str] = ()) -> list[str]:
    """Add what is new (in these folders, where any are named), and only that. Gives what was added."""
    added = [path for path in unreleased(root) if not folders or path.partition("/")[0] in folders]
    entries = locked(root) | {path: checksum for path, checksum in present(root).items() if path in added}
    (root / LOCK).write_text("".join(f"{entries[path]}  {path}\n" for path in sorted(entries)))
    return added
