"""`till dlq`: messages that a consumer could not handle, and what is to become of them."""

import asyncio
import getpass
import os
import re
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from shared.errors import OperatorError
from shared.settings import Settings

if TYPE_CHECKING:
    from infra.letters import Done, Found, Place, Shown
    from shared.rehearsal import Rehearsal
    from shared.settling import How, Settled

ID = re.compile(r"(\w+)\.dlq/(\d{1,9})/(\d{1,18})", re.ASCII)
NO_CHANGE = "change nothing: what it says is known already, or something newer is (a row at a later version stays)"

Result = TypeVar("Result")


@click.group()
def dlq() -> None:
    """Dead letters: messages that a consumer could not handle, kept with the reason.

    \b
    Examples:
      till dlq list                       what waits to be settled
      till dlq show order.dlq/0/17        why it died, what is in it, what a retry would do
      till dlq retry order.dlq/0/17       apply it now, through the consumer that failed on it
      till dlq drop order.dlq/0/17 --reason "test data"
    """


@dlq.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that were retried or dropped.")
@click.option("--service", "only", metavar="NAME", help="Those of one service.")
@as_json
def list_(everything: bool, only: str | None, as_json: bool) -> None:
    """Dead letters that wait to be settled, the newest last.

    \b
    Examples:
      till dlq list
      till dlq list --service order --all
    """
    from infra.letters import find

    settings = Settings.load()
    names = _services(settings, [only] if only else [])
    found = _run(find(settings, [only] if only else names, everything))
    if as_json:
        print_json([_summary(one) for one in found])
        return
    for one in found:
        _print_found(one)
    waiting = sum(one.settled is None for one in found)
    out.print(Text(f"{waiting} to settle. To look into one: till dlq show ID" if waiting else "None to settle.", "dim"))


@dlq.command()
@click.argument("letter", metavar="ID")
@as_json
def show(letter: str, as_json: bool) -> None:
    """Why it died, what is in it, and what a retry would do.

    The last is found out by doing it, in a transaction that is rolled back. Personal data stays sealed.

    \b
    Example:
      till dlq show order.dlq/0/17
    """
    settings = Settings.load()
    [place] = _places(settings, [letter])
    from infra.letters import look_into

    shown = _run(look_into(settings, place))
    if as_json:
        print_json(_document(shown))
    else:
        _print_shown(shown)


@dlq.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that wait, the oldest of each service first.")
@as_json
@click.pass_context
def retry(context: click.Context, ids: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Apply messages through the consumers that failed on them: each exactly once, whoever else tries.

    Effect and settlement are one transaction. What fails again stays as it was, and the exit code is 1.

    \b
    Examples:
      till dlq retry order.dlq/0/17
      till dlq retry --all
    """
    if bool(ids) == everything:
        raise click.UsageError("Say which dead letters, or --all.")
    settings = Settings.load()
    places = _places(settings, ids)
    from infra.letters import retry_all, retry_these

    done = _run(retry_all(settings, _operator()) if everything else retry_these(settings, places, _operator()))
    _tell(context, done, "retried", as_json)


@dlq.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", required=True, metavar="TEXT", help="Why it need not be handled. It is kept.")
@as_json
@click.pass_context
def drop(context: click.Context, ids: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Settle dead letters without a retry. They stay in their topic.

    \b
    Example:
      till dlq drop cart.dlq/0/3 --reason "sent by hand, see ticket 4711"
    """
    if not reason.strip():
        raise click.UsageError("The reason is empty. Who comes after you wants to know it.")
    settings = Settings.load()
    places = _places(settings, ids)
    from infra.letters import drop_these

    _tell(context, _run(drop_these(settings, places, reason.strip(), _operator())), "dropped", as_json)


def _places(settings: Settings, ids: Sequence[str]) -> "list[Place]":
    for text in ids:
        if not ID.fullmatch(text):
            raise click.UsageError(f"{text!r} names no dead letter. One is named like cart.dlq/0/17: till dlq list")
    from infra.letters import Place

    split = [ID.findall(text)[0] for text in dict.fromkeys(ids)]
    _services(settings, [service for service, _, _ in split])
    return [Place(service, int(partition), int(offset)) for service, partition, offset in split]


def _services(settings: Settings, named: Sequence[str]) -> list[str]:
    from infra.letters import services

    known = list(services(settings))
    if unknown := set(named) - set(known):
        raise click.UsageError(f"There is no service {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    return known


def _operator() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return f"uid {os.getuid()}"


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """What goes away meanwhile is the operator's to bring back."""
    from aiokafka.errors import KafkaError

    from shared.database import AWAY
    from shared.settling import NOT_TWICE

    try:
        return asyncio.run(work)
    except (*AWAY, KafkaError) as error:
        raise OperatorError(f"The connection was lost: {error!r}", NOT_TWICE) from error


def _tell(context: click.Context, done: "Sequence[Done]", how: "How", as_json: bool) -> None:
    as_asked = [one.is_as_asked(how) for one in done]
    if as_json:
        print_json(
            [
                {"id": one.id, "ok": ok, "before": _settled(one.before), "error": one.error or None}
                for one, ok in zip(done, as_asked, strict=True)
            ]
        )
    else:
        for one, ok in zip(done, as_asked, strict=True):
            said = one.error or (f"{one.id} {how}" if one.before is None else f"{one.id} had been {_words(one.before)}")
            out.print(Text.assemble(("✓ ", "green") if ok else ("✗ ", "bold red"), said))
        if not done:
            out.print(Text("None to settle.", "dim"))
    context.exit(0 if all(as_asked) else 1)


def _words(how: "Settled") -> str:
    because = f": {how.why}" if how.why else ""
    return f"{how.how} by {how.by} at {how.time:%Y-%m-%d %H:%M:%S} UTC{because}"


def _settled(how: "Settled | None") -> dict[str, Any] | None:
    return {"how": how.how, "reason": how.why or None, "by": how.by, "time": how.time} if how else None


def _summary(found: "Found") -> dict[str, Any]:
    death = found.death
    return {
        "id": found.id,
        "time": death.time,
        "consumer": death.consumer,
        "topic": death.topic,
        "partition": death.partition,
        "offset": death.offset,
        "type": found.type or None,
        "stream": found.stream or None,
        "reason": found.reason,
        "settled": _settled(found.settled),
    }


def _document(shown: "Shown") -> dict[str, Any]:
    letter, plan = shown.letter, shown.retry
    return {
        **_summary(shown.found),
        "causes": letter.causes.splitlines(),
        "trace": letter.trace,
        "headers": [[name, (value or b"").decode(errors="replace")] for name, value in letter.original.headers],
        "payload": shown.payload,
        "undecodable": shown.undecodable or None,
        "retry": plan
        and {
            "error": plan.error or None,
            "commands": [
                {"stream": stream, "command": type(command).__name__, "data": command}
                for stream, command in plan.commands
            ],
            "events": plan.events,
            "rows": plan.rows,
        },
    }


def _print_found(found: "Found") -> None:
    death = found.death
    about = " of ".join(filter(None, (found.type, found.stream)))
    out.print(
        Text.assemble(
            (found.id, "bold"),
            f"  {death.time:%Y-%m-%d %H:%M:%S}  {death.consumer or '(no consumer)'}",
            f"  {death.topic}/{death.partition}/{death.offset}  {about}",
        )
    )
    out.print(Text(f"    {found.reason}"))
    if found.settled:
        out.print(Text(f"    {_words(found.settled)}", "dim"))


def _print_shown(shown: "Shown") -> None:
    _print_found(shown.found)
    for cause in shown.letter.causes.splitlines()[1:]:
        out.print(Text(f"    because of {cause}"))
    _section("Headers")
    for name, value in shown.letter.original.headers:
        out.print(Text(f"  {name:<18}{(value or b'').decode(errors='replace')}"))
    _section("Payload")
    out.print(Text(f"  cannot be read: {shown.undecodable}" if shown.undecodable else _indented(shown.payload)))
    if shown.retry:
        _section("A retry would")
        for line in _plan(shown.found, shown.retry):
            out.print(Text(f"  {line}"))
    if shown.letter.trace:
        _section("Trace")
        out.print(Text(shown.letter.trace.rstrip(), "dim"))


def _plan(found: "Found", plan: "Rehearsal") -> list[str]:
    through = found.death.consumer
    lines = [f"ask {type(command).__name__} of {stream}" for stream, command in plan.commands]
    lines += [f"append {event['type']} to {event['stream_id']} as version {event['version']}" for event in plan.events]
    lines += [f"write {table} {orjson.dumps(row).decode()}" for table, rows in plan.rows.items() for row in rows]
    if plan.error:
        return [*lines, f"fail again: {plan.error}"]
    return [*lines, *([] if plan.events or plan.rows else [NO_CHANGE]), f"do so through {through}, and settle it"]


def _section(title: str) -> None:
    out.print(Text(f"\n{title}", "bold"))


def _indented(payload: Any) -> str:
    text = orjson.dumps(payload, option=orjson.OPT_INDENT_2, default=str).decode()
    return "\n".join(f"  {line}" for line in text.splitlines())
