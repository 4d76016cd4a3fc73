"""`till topics`: compares the declared topics with those of the cluster."""

import asyncio
from dataclasses import asdict

import click
from rich.table import Table
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.settings import Settings


@click.command()
@click.option("--create", is_flag=True, help="Create missing topics. A topic that differs is left as it is.")
@json_option
@click.pass_context
def topics(context: click.Context, create: bool, as_json: bool) -> None:
    """Compare the declared topics with the cluster's. Exit code 1 on a difference. No topic is altered.

    Topics are declared in schemas/topics.toml.

    \b
    Examples:
      till topics
      till topics --create      on a new cluster
    """
    from shared.messaging.topics import compare_topics, declared_topics, ensure_topics

    declared, settings = declared_topics(), Settings.load()
    if create:
        asyncio.run(ensure_topics(settings, declared))
    found = asyncio.run(compare_topics(settings, declared))
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
