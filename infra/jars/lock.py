"""Reads the lock: the files of every bundle, with the size and checksum of each."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LOCK = Path(__file__).parent.parent / "jars.lock.toml"

COORDINATE = re.compile(
    r"(?P<group>[^:]+):(?P<name>[^:]+):(?P<version>[^:@]+)(:(?P<classifier>[^@]+))?(@(?P<extension>.+))?"
)


@dataclass(frozen=True)
class Artifact:
    coordinate: str
    sha256: str
    size: int
    unpacked: str
    group: str
    name: str
    version: str
    classifier: str
    extension: str

    @classmethod
    def locked(cls, coordinate: str, sha256: str = "", size: int = 0, unpacked: str = "") -> Self:
        parts = COORDINATE.fullmatch(coordinate)
        if not parts:
            raise ValueError(f"not group:name:version[:classifier][@extension]: {coordinate}")
        return cls(coordinate, sha256, size, unpacked, **parts.groupdict(""))

    @property
    def file(self) -> str:
        return f"{self.stem}.{self.extension or 'jar'}"

    @property
    def stem(self) -> str:
        return "-".join(filter(None, (self.name, self.version, self.classifier)))

    @property
    def path(self) -> str:
        """The place of the file in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"

    @property
    def is_archive(self) -> bool:
        return self.extension == "tar.gz"


def read_lock(path: Path = LOCK) -> dict[str, list[Artifact]]:
    """Returns the bundles by name, each in the order of the file, which is the order of the classpath."""
    with path.open("rb") as file:
        bundles = tomllib.load(file)
    return {
        bundle: [Artifact.locked(coordinate, **content) for coordinate, content in artifacts.items()]
        for bundle, artifacts in bundles.items()
    }
