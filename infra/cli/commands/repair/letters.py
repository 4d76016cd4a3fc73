"""Prints dead letters, and what was done with them, for people and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.text import Text

from infra.cli.render.console import out, print_json
from infra.cli.render.moments import absolute

if TYPE_CHECKING:
    from services.operations.dead_letters import LetterDetails, LetterResult, LetterSummary
    from shared.recovery.rehearsal import Rehearsal
    from shared.recovery.settlements import How, Settlement

NO_CHANGE = "change nothing: its effect, or a newer one, is already there"


def show_results(context: click.Context, done: "Sequence[LetterResult]", how: "How", as_json: bool) -> None:
    """Prints what became of each letter. Exit code 1 when one of them is not settled as requested."""
    as_asked = [one.succeeded(how) for one in done]
    if as_json:
        print_json(
            [
                {"id": one.id, "ok": ok, "before": _settled(one.earlier), "error": one.error or None}
                for one, ok in zip(done, as_asked, strict=True)
            ]
        )
    else:
        for one, ok in zip(done, as_asked, strict=True):
            result = one.error or (
                f"{one.id} {how}" if one.earlier is None else f"{one.id} had been {_words(one.earlier)}"
            )
            out.print(Text.assemble(("✓ ", "green") if ok else ("✗ ", "bold red"), result))
        if not done:
            out.print(Text("None is waiting.", "dim"))
    context.exit(0 if all(as_asked) else 1)


def _words(settlement: "Settlement") -> str:
    because = f": {settlement.why}" if settlement.why else ""
    return f"{settlement.how} by {settlement.by} at {absolute(settlement.time)}{because}"


def _settled(settlement: "Settlement | None") -> dict[str, Any] | None:
    if settlement is None:
        return None
    return {"how": settlement.how, "reason": settlement.why or None, "by": settlement.by, "time": settlement.time}


def summary_document(found: "LetterSummary") -> dict[str, Any]:
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
        "settled": _settled(found.settlement),
    }


def details_document(shown: "LetterDetails") -> dict[str, Any]:
    letter, plan = shown.letter, shown.rehearsal
    return {
        **summary_document(shown.summary),
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


def print_summary(found: "LetterSummary") -> None:
    death = found.death
    about = " of ".join(filter(None, (found.type, found.stream)))
    out.print(
        Text.assemble(
            (found.id, "bold"),
            f"  {absolute(death.time)}  {death.consumer or '(no consumer)'}",
            f"  {death.topic}/{death.partition}/{death.offset}  {about}",
        )
    )
    out.print(Text(f"    {found.reason}"))
    if found.settlement:
        out.print(Text(f"    {_words(found.settlement)}", "dim"))


def print_details(shown: "LetterDetails") -> None:
    print_summary(shown.summary)
    for cause in shown.letter.causes.splitlines()[1:]:
        out.print(Text(f"    because of {cause}"))
    _section("Headers")
    for name, value in shown.letter.original.headers:
        out.print(Text(f"  {name:<18}{(value or b'').decode(errors='replace')}"))
    _section("Payload")
    out.print(Text(f"  cannot be decoded: {shown.undecodable}" if shown.undecodable else _indented(shown.payload)))
    if shown.rehearsal:
        _section("A retry would")
        for line in _plan(shown.summary, shown.rehearsal):
            out.print(Text(f"  {line}"))
    if shown.letter.trace:
        _section("Trace")
        out.print(Text(shown.letter.trace.rstrip(), "dim"))


def _plan(found: "LetterSummary", plan: "Rehearsal") -> list[str]:
    through = found.death.consumer
    lines = [f"send {type(command).__name__} to {stream}" for stream, command in plan.commands]
    lines += [f"append {event['type']} to {event['stream_id']} as version {event['version']}" for event in plan.events]
    lines += [f"write {table} {orjson.dumps(row).decode()}" for table, rows in plan.rows.items() for row in rows]
    if plan.error:
        return [*lines, f"fail again: {plan.error}"]
    return [
        *lines,
        *([] if plan.events or plan.rows else [NO_CHANGE]),
        f"use the consumer {through}, and mark the letter as retried",
    ]


def _section(title: str) -> None:
    out.print(Text(f"\n{title}", "bold"))


def _indented(payload: Any) -> str:
    text = orjson.dumps(payload, option=orjson.OPT_INDENT_2, default=str).decode()
    return "\n".join(f"  {line}" for line in text.splitlines())
