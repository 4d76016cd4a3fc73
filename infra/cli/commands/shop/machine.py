"""`till doctor` says what this machine has and lacks; `till install` gets what can be got."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from infra import jars
from infra.cli.console import as_json, err, out, print_json
from infra.doctor import examine
from infra.java import Java, find_java
from infra.java_package import install_java
from shared.errors import OperatorError
from shared.settings import Settings

MB = 1_000_000


@click.command()
@as_json
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """What this machine has, and what is missing. Exit code 1 when something is."""
    findings = list(examine(Settings.load()))
    healthy = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        table = Table("", "what", "found", "to do", box=None, header_style="dim")
        for finding in findings:
            mark = Text("✓", "green") if finding.ok else Text("✗", "bold red")
            table.add_row(mark, finding.what, Text(finding.found, overflow="fold"), Text(finding.todo, overflow="fold"))
        out.print(table)
    context.exit(0 if healthy else 1)


@click.command()
@as_json
def install(as_json: bool) -> None:
    """Get what is missing: Java (as root on Debian or Ubuntu) and the locked jars. Silent if all is there."""
    settings = Settings.load()
    java = _java(settings)
    with _shown_progress() as progress:
        fetched = jars.install(settings, say=_say, progress=progress)
    if fetched:
        from infra.local.warmup import archive_classes

        _say("Starting the servers once, so that they start faster from now on.")
        asyncio.run(archive_classes(settings))
    if as_json:
        print_json({"java": asdict(java), "fetched": [artifact.coordinate for artifact in fetched]})
    elif fetched:
        files = "1 file" if len(fetched) == 1 else f"{len(fetched)} files"
        size = sum(artifact.size for artifact in fetched) // MB
        _say(f"Installed {files}, {size} MB, verified, in {settings.cache / 'jars'}.")


def _say(message: str) -> None:
    err.print(Text(message))


def _java(settings: Settings) -> Java:
    try:
        return find_java(settings)
    except OperatorError:
        if settings.java_home or not install_java(_say):
            raise
        return find_java(settings)


@contextmanager
def _shown_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; elsewhere, as in a CI log, a line every few seconds."""
    said = -5.0

    def line(done: int, total: int) -> None:
        nonlocal said
        if monotonic() - said >= 5:
            said = monotonic()
            _say(f"Fetching jars: {done // MB} of {total // MB} MB")

    columns = (
        TextColumn("Fetching jars"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", visible=False)

        def draw(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=True)

        yield draw if err.is_terminal else line
