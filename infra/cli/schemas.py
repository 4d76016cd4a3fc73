"""`till schemas`: the Avro contract, and what the registry has of it."""

import asyncio

import click
from rich.table import Table

from infra.cli.console import as_json, out, print_json
from shared.registry import Registry
from shared.registry import push as push_all
from shared.schemas import load_schemas
from shared.settings import Settings


@click.group()
def schemas() -> None:
    """The event schemas: list them, or register them.

    \b
    Examples:
      till schemas list
      till schemas push       register what the registry does not have yet
    """


@schemas.command("list")
@as_json
def list_(as_json: bool) -> None:
    """Every event version of schemas/, with its subject."""
    found = load_schemas().all
    if as_json:
        print_json([{"record": s.record, "version": s.version, "topic": s.topic, "subject": s.subject} for s in found])
        return
    table = Table("record", "version", "topic", box=None)
    for schema in found:
        table.add_row(schema.record, str(schema.version), schema.topic)
    out.print(table)


@schemas.command()
@as_json
def push(as_json: bool) -> None:
    """Register every schema and set the compatibility rule. What is there already stays as it is."""
    ids = asyncio.run(_push())
    if as_json:
        print_json(ids)
        return
    out.print(f"{len(ids)} schemas are registered.")


async def _push() -> dict[str, int]:
    async with Registry(Settings.load()) as registry:
        return await push_all(registry, load_schemas())
