"""`till schemas`: lists, checks, releases and registers the Avro schemas of the events."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from infra.cli.render.console import err, json_option, out, print_json
from infra.cli.render.program import program
from infra.settings import Settings
from shared.errors import OperatorError
from shared.schemas.contract import release_lock
from shared.schemas.contract.checks import SchemaProblem, find_problems
from shared.schemas.contract.event_schemas import ROOT, EventSchema, Schemas, load_schemas
from shared.schemas.contract.files import SHARED_TYPES
from shared.schemas.registration import push as push_all
from shared.schemas.registry import Registry, RegistryUnavailable
from shared.schemas.registry_drift import RegistryDrift, compare_with_registry


@click.group()
def schemas() -> None:
    """List, check, release and register the event schemas.

    \b
    Examples:
      till schemas list
      till schemas check --offline     compare each version with all others, without a registry
      till schemas push                register schemas that the registry lacks
    """


@schemas.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List every version of every event.

    Each is shown with its subject and, if the registry answers, its id.

    \b
    Examples:
      till schemas list
      till schemas list --json
    """
    loaded = load_schemas()
    try:
        ids = asyncio.run(_compare(loaded)).ids
    except RegistryUnavailable as away:
        ids = {}
        err.print(Text(f"Ids are not shown: {away.message}", "dim"))
    unreleased = release_lock.unreleased_files(ROOT)
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
@click.option("--offline", is_flag=True, help="Check only what needs no registry.")
@json_option
@click.pass_context
def check(context: click.Context, offline: bool, as_json: bool) -> None:
    """Check that versions are compatible and released ones unchanged.

    Every version must be readable by every other, and the registry must accept the new ones. Nothing is registered.
    Exit code 1 on a problem, or if the registry does not answer.

    \b
    Examples:
      till schemas check
      till schemas check --offline
    """
    problems = find_problems()
    away, asked = None, False
    if not problems and not offline:
        try:
            problems += asyncio.run(_compare(load_schemas())).problems
            asked = True
        except RegistryUnavailable as error:
            away = error
    ok = not problems and away is None
    new = release_lock.unreleased_files(ROOT)
    if as_json:
        print_json({"ok": ok, "problems": list(map(asdict, problems)), "unreleased": new, "registry_asked": asked})
    else:
        _print_problems(problems)
        if not problems:
            _print_valid(load_schemas(), asked)
        if new:
            named = ", ".join(new[:3]) + (", ..." if new[3:] else "")
            out.print(Text(f"{len(new)} not released yet ({program()} schemas release): {named}", "dim"))
    if away:
        raise OperatorError(away.message, f"{away.hint} Without a registry: till schemas check --offline")
    context.exit(0 if ok else 1)


@schemas.command()
@json_option
def push(as_json: bool) -> None:
    """Register every schema and set the compatibility rule. Registered schemas stay as they are.

    \b
    Example:
      till schemas push
    """
    ids = asyncio.run(_push())
    if as_json:
        print_json(ids)
        return
    out.print(f"{len(ids)} schemas are registered.")


@schemas.command()
@click.argument("folders", nargs=-1)
@json_option
@click.pass_context
def release(context: click.Context, folders: tuple[str, ...], as_json: bool) -> None:
    """Release new schemas: from then on they must not change.

    Their checksums are written to schemas/released.lock. With FOLDERS, only schemas in these folders of schemas/ are
    released. Afterwards add an example of each to the golden archive: .venv/bin/python -m tests.golden

    \b
    Examples:
      till schemas release
      till schemas release cart
    """
    known = {schema.folder for schema in load_schemas().all} | {SHARED_TYPES}
    if unknown := set(folders) - known:
        raise click.UsageError(f"schemas/ has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(known))}.")
    problems = find_problems()
    if problems:
        _print_problems(problems)
        context.exit(1)
    added = release_lock.release(Path(str(ROOT)), folders)
    if as_json:
        print_json(added)
        return
    out.print("\n".join(added) or "Everything is released already.")


@schemas.command()
@click.option(
    "--examples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with an example of each event, such as tests/golden. Reactions to an event are found with it.",
)
def docs(examples: Path | None) -> None:
    """Print the event catalogue, docs/events.md.

    \b
    Example:
      till schemas docs --examples tests/golden > docs/events.md
    """
    from infra.cli.reference.events_page import page

    click.echo(page(examples), nl=False)


def _print_problems(problems: list[SchemaProblem]) -> None:
    for problem in problems:
        out.print(Text.assemble(("✗ ", "bold red"), (problem.where, "bold"), f"  {problem.what}"))
        out.print(Text(f"  → {problem.instead}"))
    if problems:
        out.print(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}.")


def _print_valid(loaded: Schemas, asked: bool) -> None:
    checked = f"{len(loaded.all)} schemas of {len(loaded.records)} records: every version reads every other, "
    agrees = " The registry agrees." if asked else ""
    out.print(Text.assemble(("✓ ", "green"), checked, "and nothing released has changed.", agrees))


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


async def _compare(loaded: Schemas) -> RegistryDrift:
    async with Registry(Settings.load()) as registry:
        return await compare_with_registry(registry, loaded)


async def _push() -> dict[str, int]:
    async with Registry(Settings.load()) as registry:
        return await push_all(registry, load_schemas())
