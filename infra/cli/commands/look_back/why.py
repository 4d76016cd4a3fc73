"""`till why`: the chain of causes of a stream's latest event, and what is still waited for."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text
from rich.tree import Tree

from infra.cli.console import as_json, out, print_json
from infra.cli.moments import both
from infra.cli.refusals import reading
from infra.cli.streams import STREAM, as_it_was
from infra.cli.telling import by, event_document, show, since, when
from shared.address import database_url

if TYPE_CHECKING:
    from services.replay.causes import Causes, Node, Root
    from services.replay.waiting import Wait


OURS = ("service:", "system:")


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Why this event, rather than the latest.")
@as_json
def why(stream: str, version: int | None, as_json: bool) -> None:
    """Why STREAM is as it is: from the first request, across services, to its latest event.

    Each event stands below its cause; the way to the one in question is bold. At the end is what the process still
    waits for: a deadline, an answer from outside, or a service that has not heard of something yet.

    \b
    Examples:
      till why order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till why payment:2f0c8e1b-7a5c-5d3f-8e6a-8b5f0c9f5e0d --version 2
    """
    status, found, waits = reading(_why(database_url(), stream, version))
    if as_json:
        print_json(_document(stream, status, found, waits))
        return
    asked = found.chain[0].recorded
    out.print(Text.assemble((stream, "bold"), f": {status or 'nothing yet'}, since {asked.type} (v{asked.version})\n"))
    for root in found.roots:
        show(_tree(root))
        out.print()
    _print_waits(waits)


async def _why(url: str, stream: str, version: int | None) -> "tuple[str | None, Causes, list[Wait]]":
    from services.replay.causes import causes
    from services.replay.portrait import of_state
    from services.replay.related import Happened
    from services.replay.rolls import category_of, open_rolls
    from services.replay.waiting import waits

    category = category_of(stream)
    async with open_rolls(url) as rolls:
        roll = rolls[category]
        handled = await as_it_was(roll, stream, version)
        recorded = await roll.event(stream, handled.version)
        assert recorded is not None
        asked = Happened(category, recorded, await roll.memory.decode(recorded.value))
        found = await causes(rolls, asked)
        status = of_state(handled.state, roll.decider.initial, "")["status"]
        return status, found, await waits(rolls, found.story, stream, found.order_id)


def _tree(root: "Root") -> Tree:
    tree = Tree(_beginning(root), guide_style="dim")
    waiting = [(tree, node) for node in reversed(root.nodes)]
    while waiting:
        parent, node = waiting.pop()
        branch = parent.add(_event(node, root.time))
        waiting += [(branch, effect) for effect in reversed(node.effects)]
    return tree


def _beginning(root: "Root") -> Text:
    if root.actor.startswith(OURS):
        unknown = f"an event that is not there ({root.cause})" if root.cause else "a cause that was not recorded"
        return Text.assemble((unknown, "yellow"), f", acted on by {root.actor}")
    return Text.assemble(("request ", "bold"), f"{root.cause} of {root.actor}, ", when(root.time))


def _event(node: "Node", beginning: datetime) -> Text:
    recorded = node.happened.recorded
    style = "bold" if node.is_asked_for else ""
    told = Text.assemble((recorded.type, style), f"  {recorded.stream_id}@{recorded.version}  ")
    actor = by(recorded.actor) if recorded.actor.startswith(OURS) else ""  # of a person the request says so
    return told.append_text(since(beginning, recorded.time)).append(actor, "dim")


def _print_waits(waits: "list[Wait]") -> None:
    if not waits:
        out.print(Text("Nothing is waited for.", "dim"))
        return
    out.print(Text("Still waited for", "bold"))
    for wait in waits:
        out.print(
            Text.assemble(
                ("  • ", "yellow"), wait.what, f", from {wait.of}" if wait.of else "", (f"  {wait.stream}", "dim")
            )
        )
        if wait.due or wait.then:
            out.print(Text(f"    {both(wait.due)}: {wait.then}" if wait.due else f"    {wait.then}", "dim"))


def _document(stream: str, status: str | None, found: "Causes", waits: "list[Wait]") -> dict[str, Any]:
    return {
        "stream": stream,
        "status": status,
        "chain": [event_document(it.recorded) for it in found.chain],
        "requests": [
            {
                "id": root.cause,
                "actor": root.actor,
                "correlation_id": root.correlation_id,
                "time": root.time,
                "events": [_nested(node) for node in root.nodes],
            }
            for root in found.roots
        ],
        "waits": waits,
    }


def _nested(node: "Node") -> dict[str, Any]:
    return {**event_document(node.happened.recorded), "led_to": [_nested(effect) for effect in node.effects]}
