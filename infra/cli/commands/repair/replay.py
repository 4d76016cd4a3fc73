"""`till replay`: prints a slice of a topic, or copies it to another topic."""

import os
import sys
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING

import click
import orjson
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.errors import BadInput, run_query
from infra.cli.render.moments import FORMATS, MOMENT
from infra.cli.render.progress import Display, progress
from infra.settings import Settings

if TYPE_CHECKING:
    from services.operations.slices.topic_slice import TopicSlice


@click.command()
@click.argument("topic")
@click.option("--from", "start", type=MOMENT, help=f"First moment: {FORMATS}. Default: the beginning.")
@click.option("--to", "end", type=MOMENT, help="Last moment, in the same formats. Default: now.")
@click.option("--into", metavar="TOPIC2", help="Copy the slice to this new topic.")
@click.option("--where", "condition", metavar="EXPR", help="Take only messages for which this is true.")
@json_option
def replay(
    topic: str, start: datetime | None, end: datetime | None, into: str | None, condition: str | None, as_json: bool
) -> None:
    """Print a slice of TOPIC as JSON lines, or copy it byte for byte to another topic.

    The copy keeps values, keys, headers, times and partitions, and adds the headers replay_topic, replay_partition,
    replay_offset and replay_time. No service reads it. Personal data stays encrypted.

    EXPR compares fields with ==, !=, <, <=, >, >=, in and not in, and combines comparisons with and, or and not. Fields
    are type, stream, version, id, time, actor, correlation, causation, key, topic, partition, offset and data. A field
    of a list, such as data.lines.sku, is the list of that field of its items.

    \b
    Examples:
      till replay cart.events --from -10m
      till replay order.events --where "type == 'OrderCancelled' and data.reason == 'timeout'"
      till replay order.events --where "'KIT-1001' in data.lines.sku" --from -1d --into debug.orders
    """
    from services.operations.slices.conditions import BadCondition, parse_condition
    from services.operations.slices.topic_slice import FIELDS, NotATopic, TopicSlice

    if start and end and start > end:
        raise click.UsageError("The slice ends before it begins: --from is after --to.")
    try:
        wanted = TopicSlice(topic, start, end, parse_condition(condition, FIELDS) if condition else None)
    except BadCondition as wrong:
        raise BadInput(f"--where: {wrong}") from None
    settings = Settings.load()
    with progress(quiet=as_json) as shown:
        try:
            taken = run_query(_copy(settings, wanted, into, shown) if into else _print(settings, wanted, shown))
        except NotATopic as wrong:
            raise BadInput(str(wrong)) from None
    if into and as_json:
        print_json({"topic": topic, "into": into, "messages": taken})
    elif into:
        out.print(Text.assemble(("✓ ", "green"), f"{taken:,} messages of {topic} are in {into}."))


async def _copy(settings: Settings, wanted: "TopicSlice", into: str, shown: Display) -> int:
    from services.operations.slices.topic_slice import copy_slice
    from shared.messaging.kafka import kafka_errors

    with kafka_errors(settings):
        return await copy_slice(settings, wanted, into, lambda seen, _: shown.count(wanted.topic, "copying", seen))


async def _print(settings: Settings, wanted: "TopicSlice", shown: Display) -> int:
    from services.operations.slices.topic_slice import read_documents
    from shared.messaging.kafka import kafka_errors

    def on_read(seen: int, _taken: int) -> None:
        shown.count(wanted.topic, "reading", seen)

    printed = 0
    with kafka_errors(settings):
        async with aclosing(read_documents(settings, wanted, on_read)) as found:
            async for document in found:
                try:
                    click.echo(orjson.dumps(document, default=str).decode())
                except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                    break
                printed += 1
    return printed
