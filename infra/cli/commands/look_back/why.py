"""`till why`: shows the chain of causes of a stream's latest event, and what is still pending."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text
from rich.tree import Tree

from infra.cli.render.console import json_option, out, print_json, print_wide
from infra.cli.render.errors import run_query
from infra.cli.render.events import by, event_document, since, when
from infra.cli.render.moments import both
from infra.cli.render.program import callable_here
from infra.cli.render.streams import STREAM, read_state_at
from shared.store.address import database_url

if TYPE_CHECKING:
    from services.operations.history.causes import CauseNode, Causes, Root
    from services.operations.history.pending import Wait


@click.command()
@click.argument("stream", type=STREAM)
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Explain this event instead of the latest.")
@json_option
def why(stream: str, version: int | None, as_json: bool) -> None:
    """Show why STREAM is as it is: from the first request, across services, to its latest event.

    STREAM is cart:ID, order:ID, payment:ID or stock:SKU. Each event stands below its cause; the path to the event in
    question is bold. At the end is what the process still waits for: a deadline, an answer from outside, or a service
    that has not received a message yet.

    \b
    Examples:
      till why order:5c0d3f0e-6a8b-5f0c-9f5e-0d8f1f1f6b11
      till why payment:2f0c8e1b-7a5c-5d3f-8e6a-8b5f0c9f5e0d --version 2
    """
    status, found, waits = run_query(_why(database_url(), stream, version))
    if as_json:
        print_json(_document(stream, status, found, waits))
        return
    asked = found.chain[0].recorded
    out.print(Text.assemble((stream, "bold"), f": {status or 'nothing yet'}, since {asked.type} (v{asked.version})\n"))
    for root in found.roots:
        print_wide(_tree(root))
        out.print()
    _print_waits(waits)


async def _why(url: str, stream: str, version: int | None) -> "tuple[str | None, Causes, list[Wait]]":
    from services.operations.history.causes import find_causes
    from services.operations.history.fields import state_fields
    from services.operations.history.pending import find_waits
    from services.operations.reading.stores import category_of, open_stores, store_of
    from services.shop.order_story import StoryEvent

    async with open_stores(url) as stores:
        store = store_of(stores, stream)
        seen = await read_state_at(store, stream, version)
        recorded = await store.event(stream, seen.version)
        assert recorded is not None
        asked = StoryEvent(category_of(stream), recorded, await store.decoder.decode(recorded.value))
        found = await find_causes(stores, asked)
        status = state_fields(seen.state, store.decider.initial, "")["status"]
        return status, found, await find_waits(stores, found.story, stream, found.order_id)


def _tree(root: "Root") -> Tree:
    tree = Tree(_beginning(root), guide_style="dim")
    waiting = [(tree, node) for node in reversed(root.nodes)]
    while waiting:
        parent, node = waiting.pop()
        branch = parent.add(_event(node, root.time))
        waiting += [(branch, effect) for effect in reversed(node.effects)]
    return tree


def _beginning(root: "Root") -> Text:
    if not root.is_request:
        unknown = f"an event that is missing ({root.cause})" if root.cause else "a cause that was not recorded"
        return Text.assemble((unknown, "yellow"), f", acted on by {root.actor}")
    return Text.assemble(("request ", "bold"), f"{root.cause} of {root.actor}, ", when(root.time))


def _event(node: "CauseNode", beginning: datetime) -> Text:
    recorded = node.happened.recorded
    style = "bold" if node.is_in_chain else ""
    line = Text.assemble((recorded.type, style), f"  {recorded.stream_id}@{recorded.version}  ")
    actor = by(recorded.actor) if node.is_reaction else ""  # for a person, the request already says so
    return line.append_text(since(beginning, recorded.time)).append(actor, "dim")


def _print_waits(waits: "list[Wait]") -> None:
    if not waits:
        out.print(Text("Nothing is pending.", "dim"))
        return
    out.print(Text("Still pending", "bold"))
    for wait in waits:
        out.print(
            Text.assemble(
                ("  • ", "yellow"), wait.what, f", from {wait.of}" if wait.of else "", (f"  {wait.stream}", "dim")
            )
        )
        if wait.due or wait.then:
            due = f"{both(wait.due)}: " if wait.due else ""
            out.print(Text(f"    {due}{callable_here(wait.then)}", "dim"))


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


def _nested(node: "CauseNode") -> dict[str, Any]:
    return {**event_document(node.happened.recorded), "led_to": [_nested(effect) for effect in node.effects]}
