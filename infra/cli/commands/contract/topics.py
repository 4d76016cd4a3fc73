"""`till topics`: what is declared, what the cluster has, and where they differ."""

import asyncio
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from shared.settings import Settings


@click.command()
@click.option("--create", is_flag=True, help="Create those that are missing. One that differs is left as it is.")
@as_json
@click.pass_context
def topics(context: click.Context, create: bool, as_json: bool) -> None:
    """Compare the declared topics with the cluster's. Exit code 1 on a difference; nothing is ever altered."""
    from shared.topics import compare, declared_topics, ensure

    declared, settings = declared_topics(), Settings.load()
    if create:
        asyncio.run(ensure(settings, declared))
    found = asyncio.run(compare(settings, declared))
    if as_json:
        print_json({"ok": found.agrees, "declared": [asdict(topic) for topic in declared], **asdict(found)})
    else:
        table = Table("", "topic", "partitions", "replicas", "kept", "difference", box=None, header_style="dim")
        for topic in declared:
            problems = ["missing"] if topic in found.missing else []
            problems += [
                f"{d.setting} is {d.actual}, declared {d.declared}" for d in found.drift if d.topic == topic.name
            ]
            table.add_row(
                Text("✗", "bold red") if problems else Text("✓", "green"),
                topic.name,
                str(topic.partitions),
                str(found.replication),
                "latest of each key" if topic.cleanup == "compact" else _kept(topic.retention_ms),
                Text("\n".join(problems), "red"),
            )
        for name in found.undeclared:
            table.add_row("", Text(name, "dim"), "", "", "", Text("not declared", "dim"))
        out.print(table)
    context.exit(0 if found.agrees else 1)


def _kept(retention_ms: int) -> str:
    return "for ever" if retention_ms < 0 else f"{retention_ms / 3_600_000:g} h"
