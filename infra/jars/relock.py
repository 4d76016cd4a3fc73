"""`python -m infra.jars.relock`: downloads every coordinate of the lock, and writes its size and checksum there."""

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from infra.jars.archive import SUMS, sha256, unpack
from infra.jars.lock import LOCK, Artifact
from infra.jars.repository import open_repository
from infra.settings import Settings

LINE = re.compile(r'^"(?P<coordinate>[^"]+)" = .*$', re.MULTILINE)


@click.command(help=__doc__)
def relock() -> None:
    text = LOCK.read_text()
    artifacts = [Artifact.locked(line["coordinate"]) for line in LINE.finditer(text)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(_download_all(Settings.load().jar_repository, artifacts, folder))
        locked = {artifact.coordinate: _content(artifact, folder) for artifact in artifacts}
    LOCK.write_text(LINE.sub(lambda line: f'"{line["coordinate"]}" = {locked[line["coordinate"]]}', text))


async def _download_all(root: str, artifacts: list[Artifact], folder: Path) -> None:
    async with open_repository(root) as repository, asyncio.TaskGroup() as tasks:
        for artifact in artifacts:
            tasks.create_task(repository.download(artifact, folder / artifact.file))


def _content(artifact: Artifact, folder: Path) -> str:
    file = folder / artifact.file
    content = f'size = {file.stat().st_size}, sha256 = "{sha256(file)}"'
    if artifact.is_archive:
        unpack(file, folder / artifact.stem)
        content += f', unpacked = "{sha256(folder / artifact.stem / SUMS)}"'
    return f"{{ {content} }}"


if __name__ == "__main__":
    relock()
