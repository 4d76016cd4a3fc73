"""What the commands print: rich for people (colour only on a terminal), one JSON document for machines."""

import sys
from collections.abc import Callable
from typing import Any

import click
import orjson
from rich.console import Console
from rich.text import Text

from shared.errors import OperatorError

out = Console(soft_wrap=not sys.stdout.isatty())
err = Console(stderr=True, soft_wrap=not sys.stderr.isatty())

as_json: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def print_json(document: Any) -> None:
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2, default=str).decode())


def report(error: OperatorError) -> None:
    err.print(Text("error: ", style="bold red").append(error.message, style="default"))
    if error.hint:
        err.print(Text("  → ").append(error.hint))
