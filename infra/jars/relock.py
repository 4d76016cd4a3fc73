"""`python -m infra.jars.relock`: fetch every coordinate of the lock anew, and write down what it holds."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from infra.jars import ivy
from infra.jars.archive import SUMS, sha256, unpack
from infra.jars.lock import LOCK, Artifact
from infra.java import find_java
from shared.settings import Settings

LINE = re.compile(r'^"(?P<coordinate>[^"]+)" = .*$', re.MULTILINE)


@click.command(help=__doc__)
def relock() -> None:
    text, settings = LOCK.read_text(), Settings.load()
    artifacts = [Artifact.locked(line["coordinate"]) for line in LINE.finditer(text)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        log = ivy.fetch(find_java(settings), artifacts, folder, settings.jar_repository)
        absent = [artifact.coordinate for artifact in artifacts if not (folder / artifact.file).exists()]
        if absent:
            raise click.ClickException(f"{', '.join(absent)}: {ivy.reason(log)}")
        locked = {artifact.coordinate: _content(artifact, folder) for artifact in artifacts}
    LOCK.write_text(LINE.sub(lambda line: f'"{line["coordinate"]}" = {locked[line["coordinate"]]}', text))


def _content(artifact: Artifact, folder: Path) -> str:
    file = folder / artifact.file
    content = f'size = {file.stat().st_size}, sha256 = "{sha256(file)}"'
    if artifact.is_archive:
        unpack(file, folder / artifact.stem)
        content += f', unpacked = "{sha256(folder / artifact.stem / SUMS)}"'
    return f"{{ {content} }}"


if __name__ == "__main__":
    relock()
