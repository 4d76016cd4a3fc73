"""`till dlq`: lists, inspects, retries and drops the messages that a consumer could not handle."""

import asyncio
import getpass
import os
import re
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.text import Text

from infra.cli.commands.repair.letters import (
    details_document,
    print_details,
    print_summary,
    show_results,
    summary_document,
)
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.program import program
from infra.settings import Settings
from shared.errors import OperatorError

if TYPE_CHECKING:
    from services.operations.dead_letters import LetterId

ID = re.compile(r"(\w+)\.dlq/(\d{1,9})/(\d{1,18})", re.ASCII)

Result = TypeVar("Result")


@click.group()
def dlq() -> None:
    """Dead letters: messages that a consumer could not handle, stored with the reason.

    \b
    Examples:
      till dlq list                       dead letters that are waiting
      till dlq show order.dlq/0/17        why it failed, its content, what a retry would do
      till dlq retry order.dlq/0/17       apply it now, with the consumer that failed on it
      till dlq drop order.dlq/0/17 --reason "test data"
    """


@dlq.command("list")
@click.option("--all", "everything", is_flag=True, help="Include dead letters that were retried or dropped.")
@click.option("--service", "only", metavar="NAME", help="List only the dead letters of one service.")
@json_option
def list_(everything: bool, only: str | None, as_json: bool) -> None:
    """List the dead letters that are waiting, the newest last.

    \b
    Examples:
      till dlq list
      till dlq list --service order --all
    """
    from services.operations.dead_letters import list_letters

    settings = Settings.load()
    names = _services(settings, [only] if only else [])
    found = _run(list_letters(settings, [only] if only else names, include_settled=everything))
    if as_json:
        print_json([summary_document(one) for one in found])
        return
    for one in found:
        print_summary(one)
    waiting = sum(one.settlement is None for one in found)
    out.print(
        Text(f"{waiting} waiting. To inspect one: {program()} dlq show ID" if waiting else "None is waiting.", "dim")
    )


@dlq.command()
@click.argument("letter", metavar="ID")
@json_option
def show(letter: str, as_json: bool) -> None:
    """Show why a message failed, its content, and what a retry would do.

    The retry is rehearsed in a transaction that is rolled back. Personal data stays encrypted.

    \b
    Example:
      till dlq show order.dlq/0/17
    """
    settings = Settings.load()
    [letter_id] = _letter_ids(settings, [letter])
    from services.operations.dead_letters import inspect_letter

    shown = _run(inspect_letter(settings, letter_id))
    if as_json:
        print_json(details_document(shown))
    else:
        print_details(shown)


@dlq.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Retry all that are waiting, the oldest of each service first.")
@json_option
@click.pass_context
def retry(context: click.Context, ids: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Apply dead letters again, each exactly once.

    Each is applied by the consumer that failed on it. Its effect and the mark that it was retried are written in one
    transaction. A message that fails again stays as it was, and the exit code is 1.

    \b
    Examples:
      till dlq retry order.dlq/0/17
      till dlq retry --all
    """
    if bool(ids) == everything:
        raise click.UsageError("Name dead letters, or use --all.")
    settings = Settings.load()
    letter_ids = _letter_ids(settings, ids)
    from services.operations.dead_letters import retry_all_letters, retry_letters

    done = _run(
        retry_all_letters(settings, _operator()) if everything else retry_letters(settings, letter_ids, _operator())
    )
    show_results(context, done, "retried", as_json)


@dlq.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", required=True, metavar="TEXT", help="Why they need not be applied. The reason is stored.")
@json_option
@click.pass_context
def drop(context: click.Context, ids: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Drop dead letters without applying them. They stay in their topic.

    \b
    Example:
      till dlq drop cart.dlq/0/3 --reason "sent by hand, see ticket 4711"
    """
    if not reason.strip():
        raise click.UsageError("The reason is empty. Write down why, for those who find it later.")
    settings = Settings.load()
    letter_ids = _letter_ids(settings, ids)
    from services.operations.dead_letters import drop_letters

    show_results(context, _run(drop_letters(settings, letter_ids, reason.strip(), _operator())), "dropped", as_json)


def _letter_ids(settings: Settings, ids: Sequence[str]) -> "list[LetterId]":
    for text in ids:
        if not ID.fullmatch(text):
            raise click.UsageError(
                f"{text!r} is not the id of a dead letter. Ids look like cart.dlq/0/17; see till dlq list."
            )
    from services.operations.dead_letters import LetterId

    split = [ID.findall(text)[0] for text in dict.fromkeys(ids)]
    _services(settings, [service for service, _, _ in split])
    return [LetterId(service, int(partition), int(offset)) for service, partition, offset in split]


def _services(settings: Settings, named: Sequence[str]) -> list[str]:
    from services.operations.dead_letters import services_by_name

    known = list(services_by_name(settings))
    if unknown := set(named) - set(known):
        raise click.UsageError(f"There is no service {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    return known


def _operator() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"uid {os.getuid()}"


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs the work, and reports a lost connection as an error that says what to do."""
    from aiokafka.errors import KafkaError

    from shared.recovery.retry import NOT_TWICE
    from shared.store.database import CONNECTION_ERRORS

    try:
        return asyncio.run(work)
    except (*CONNECTION_ERRORS, KafkaError) as error:
        raise OperatorError(f"The connection was lost: {error!r}", NOT_TWICE) from error
