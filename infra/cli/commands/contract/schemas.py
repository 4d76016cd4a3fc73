"""`till schemas`: the Avro contract, what may be said against it, and what the registry has of it."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from infra.cli.console import as_json, err, out, print_json
from shared import contract, registered, released
from shared.contract import Problem
from shared.errors import OperatorError
from shared.registry import Registry, RegistryUnavailable
from shared.registry import push as push_all
from shared.schema_files import SHARED_TYPES
from shared.schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.settings import Settings


@click.group()
def schemas() -> None:
    """The event schemas: see, check, release and register them.

    \b
    Examples:
      till schemas list
      till schemas check --offline     every version against all before it, in words
      till schemas push                register what the registry does not have yet
    """


@schemas.command("list")
@as_json
def list_(as_json: bool) -> None:
    """Every version of every event, with its subject, and its id where the registry can be asked."""
    loaded = load_schemas()
    try:
        ids = asyncio.run(_compare(loaded)).ids
    except RegistryUnavailable as away:
        ids = {}
        err.print(Text(f"Ids are not shown: {away.message}", "dim"))
    unreleased = released.unreleased(ROOT)
    rows = [(schema, ids.get(str(schema)), f"{schema}.avsc" in unreleased) for schema in loaded.all]
    if as_json:
        print_json([_listed(loaded, *row) for row in rows])
        return
    widest = max(len(str(schema)) for schema in loaded.all)
    out.print(Text(f"{'schema':<{widest}}  {'id':>5}  subject", "dim"))
    for schema, schema_id, is_new in rows:
        remarks = [f"retired, read as {_short(into)}"] if (into := _into(loaded, schema)) else []
        remarks += ["not released"] if is_new else []
        line = f"{schema!s:<{widest}}  {schema_id or '-':>5}  {schema.subject}"
        out.print(Text.assemble(line, (f"  ({', '.join(remarks)})" if remarks else "", "dim")))


@schemas.command()
@click.option("--offline", is_flag=True, help="Only what needs no registry.")
@as_json
@click.pass_context
def check(context: click.Context, offline: bool, as_json: bool) -> None:
    """Check that every version can be read by every other, and that nothing released has changed.

    Then the registry is asked whether it would take the new ones. Nothing is registered. Exit code 1 on a problem,
    and where the registry does not answer.
    """
    problems = contract.problems()
    away, asked = None, False
    if not problems and not offline:
        try:
            problems += asyncio.run(_compare(load_schemas())).problems
            asked = True
        except RegistryUnavailable as error:
            away = error
    ok = not problems and away is None
    new = released.unreleased(ROOT)
    if as_json:
        print_json({"ok": ok, "problems": list(map(asdict, problems)), "unreleased": new, "registry_asked": asked})
    else:
        _print_problems(problems)
        if not problems:
            _print_sound(load_schemas(), asked)
        if new:
            named = ", ".join(new[:3]) + (", ..." if new[3:] else "")
            out.print(Text(f"{len(new)} not released yet (till schemas release): {named}", "dim"))
    if away:
        raise OperatorError(away.message, f"{away.hint} Without a registry: till schemas check --offline")
    context.exit(0 if ok else 1)


@schemas.command()
@as_json
def push(as_json: bool) -> None:
    """Register every schema and set the compatibility rule. What is there already stays as it is."""
    ids = asyncio.run(_push())
    if as_json:
        print_json(ids)
        return
    out.print(f"{len(ids)} schemas are registered.")


@schemas.command()
@click.argument("folders", nargs=-1)
@as_json
@click.pass_context
def release(context: click.Context, folders: tuple[str, ...], as_json: bool) -> None:
    """Write the checksums of new files into schemas/released.lock: from then on they must not change.

    FOLDERS of schemas/ limit it. Their golden bytes are added with: python -m tests.golden
    """
    known = {schema.folder for schema in load_schemas().all} | {SHARED_TYPES}
    if unknown := set(folders) - known:
        raise click.UsageError(f"schemas/ has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(known))}.")
    problems = contract.problems()
    if problems:
        _print_problems(problems)
        context.exit(1)
    added = released.release(Path(str(ROOT)), folders)
    if as_json:
        print_json(added)
        return
    out.print("\n".join(added) or "Everything was released before.")


@schemas.command()
def docs() -> None:
    """Print the catalogue of events, docs/events.md."""
    from infra.cli.events_page import page

    click.echo(page(), nl=False)


def _print_problems(problems: list[Problem]) -> None:
    for problem in problems:
        out.print(Text.assemble(("✗ ", "bold red"), (problem.where, "bold"), f"  {problem.what}"))
        out.print(Text(f"  → {problem.instead}"))
    if problems:
        out.print(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}.")


def _print_sound(loaded: Schemas, asked: bool) -> None:
    said = f"{len(loaded.all)} schemas of {len(loaded.records)} records: every version reads every other, "
    agrees = " The registry agrees." if asked else ""
    out.print(Text.assemble(("✓ ", "green"), said, "and nothing released has changed.", agrees))


def _listed(loaded: Schemas, schema: EventSchema, schema_id: int | None, is_new: bool) -> dict[str, Any]:
    return {
        "record": schema.record,
        "version": schema.version,
        "topic": schema.topic,
        "subject": schema.subject,
        "id": schema_id,
        "released": not is_new,
        "retired_into": _into(loaded, schema),
    }


def _into(loaded: Schemas, schema: EventSchema) -> str | None:
    upcaster = loaded.upcasters.get(schema.record)
    return upcaster.into if upcaster else None


def _short(record: str) -> str:
    return record.rpartition(".")[2]


async def _compare(loaded: Schemas) -> registered.Registered:
    async with Registry(Settings.load()) as registry:
        return await registered.compare(registry, loaded)


async def _push() -> dict[str, int]:
    async with Registry(Settings.load()) as registry:
        return await push_all(registry, load_schemas())
