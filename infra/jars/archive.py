"""Unpacks an archive and writes the checksums of its files, so that it can be verified without the archive."""

import tarfile
from hashlib import file_digest
from pathlib import Path

SUMS = "SHA256SUMS"  # in the format of sha256sum; its own checksum is in the lock


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    (folder / SUMS).write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in files))


def is_whole(folder: Path, sums: str) -> bool:
    try:
        if sha256(folder / SUMS) != sums:
            return False
        lines = (line.split("  ", 1) for line in (folder / SUMS).read_text().splitlines())
        return all(sha256(folder / name) == expected for expected, name in lines)
    except FileNotFoundError:
        return False


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
