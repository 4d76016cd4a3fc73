"""`till doctor` shows what this machine has and lacks; `till install` installs what it can."""

import asyncio
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.program import callable_here
from infra.cli.render.progress import progress
from infra.cli.render.values import size
from infra.doctor import examine
from infra.jars.install import install as install_jars
from infra.java.package import install_java
from infra.java.runtime import Java, find_java
from infra.settings import Settings
from shared.errors import OperatorError


@click.command()
@json_option
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Show what this machine has, and what is missing. Exit code 1 when something is missing.

    For everything that is missing, it names the command or the setting that helps. Nothing is changed.

    \b
    Examples:
      till doctor
      till doctor --json
    """
    findings = list(examine(Settings.load()))
    healthy = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        table = Table("", "what", "found", "to do", box=None, header_style="dim")
        for finding in findings:
            mark = Text("✓", "green") if finding.ok else Text("✗", "bold red")
            todo = Text(callable_here(finding.todo), overflow="fold")
            table.add_row(mark, finding.what, Text(finding.found, overflow="fold"), todo)
        out.print(table)
    context.exit(0 if healthy else 1)


@click.command()
@json_option
def install(as_json: bool) -> None:
    """Install what is missing: Java and the locked jars.

    Java is installed if this runs as root on Debian or Ubuntu; elsewhere the command to install it is printed. The jars
    of Kafka, the schema registry and Spark are downloaded to TILL_CACHE, and checked against infra/jars.lock.toml. If
    nothing is missing, nothing is printed.

    \b
    Examples:
      till install
      till install --json       which Java was found, and which files were downloaded
    """
    settings = Settings.load()
    java = _java(settings)
    with progress(quiet=as_json) as shown:

        def count(done: int, total: int) -> None:
            shown.count("jars", "downloading", done, total, size)

        fetched = install_jars(settings, say=_say, progress=count)
    if fetched:
        from infra.local.warmup import archive_classes

        _say("Starting the servers once, so that they start faster from now on.")
        asyncio.run(archive_classes(settings))
    if as_json:
        print_json({"java": asdict(java), "fetched": [artifact.coordinate for artifact in fetched]})
    elif fetched:
        files = "1 file" if len(fetched) == 1 else f"{len(fetched)} files"
        total = size(sum(artifact.size for artifact in fetched))
        _say(f"Installed and verified {files}, {total}, in {settings.cache / 'jars'}.")


def _say(message: str) -> None:
    err.print(Text(message))


def _java(settings: Settings) -> Java:
    try:
        return find_java(settings)
    except OperatorError:
        if settings.java_home or not install_java(_say):
            raise
        return find_java(settings)
