"""`till replay`: a slice of a topic, into another one or to be read."""

import os
import sys
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING

import click
import orjson
from rich.text import Text

from infra.cli.console import as_json, out, print_json
from infra.cli.moments import MOMENT
from infra.cli.pace import Pace, pacing
from infra.cli.refusals import BadInput, reading
from shared.settings import Settings

if TYPE_CHECKING:
    from services.replay.slices import Slice


@click.command()
@click.argument("topic")
@click.option("--from", "start", type=MOMENT, help="The first moment. Default: the beginning.")
@click.option("--to", "end", type=MOMENT, help="The last moment. Default: now.")
@click.option("--into", metavar="TOPIC2", help="Re-publish the slice to this new topic.")
@click.option("--where", "condition", metavar="EXPR", help="Only messages of which this holds.")
@as_json
def replay(
    topic: str, start: datetime | None, end: datetime | None, into: str | None, condition: str | None, as_json: bool
) -> None:
    """Take a slice of TOPIC: to standard output as JSON lines, or byte for byte into another topic.

    In another topic, values, keys, headers, times and partitions are as they were; headers replay_topic,
    replay_partition, replay_offset and replay_time are added. Nothing of the shop reads it. Personal data stays sealed.

    EXPR compares fields: type, stream, version, id, time, actor, correlation, causation, key, partition, offset and
    data, with ==, !=, <, <=, >, >=, in, not in, and, or, not. A field of a list is that field of each of its items.

    \b
    Examples:
      till replay cart.events --from -10m
      till replay order.events --where "type == 'OrderCancelled' and data.reason == 'timeout'"
      till replay order.events --where "'KIT-1001' in data.lines.sku" --from -1d --into debug.orders
    """
    from services.replay.expressions import BadExpression, where
    from services.replay.slices import NAMES, NotATopic, Slice

    if start and end and start > end:
        raise click.UsageError("The slice ends before it begins: --from is after --to.")
    try:
        wanted = Slice(topic, start, end, where(condition, NAMES) if condition else None)
    except BadExpression as wrong:
        raise BadInput(f"--where: {wrong}") from None
    settings = Settings.load()
    with pacing(quiet=as_json) as pace:
        try:
            taken = reading(_copy(settings, wanted, into, pace) if into else _print(settings, wanted, pace))
        except NotATopic as wrong:
            raise BadInput(str(wrong)) from None
    if into and as_json:
        print_json({"topic": topic, "into": into, "messages": taken})
    elif into:
        out.print(Text.assemble(("✓ ", "green"), f"{taken:,} messages of {topic} are in {into}."))


async def _copy(settings: Settings, wanted: "Slice", into: str, pace: Pace) -> int:
    from services.replay.slices import copy
    from services.replay.topics import kafka_of

    with kafka_of(settings):
        return await copy(settings, wanted, into, lambda seen, _: pace.note(wanted.topic, "copying", seen))


async def _print(settings: Settings, wanted: "Slice", pace: Pace) -> int:
    from services.replay.slices import documents
    from services.replay.topics import kafka_of

    def told(seen: int, _taken: int) -> None:
        pace.note(wanted.topic, "reading", seen)

    printed = 0
    with kafka_of(settings):
        async with aclosing(documents(settings, wanted, told)) as found:
            async for document in found:
                try:
                    click.echo(orjson.dumps(document, default=str).decode())
                except BrokenPipeError:  # whoever reads has seen enough
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                    break
                printed += 1
    return printed
