"""The consoles that commands print to: rich for people (in colour only on a terminal), JSON for machines."""

import sys
from collections.abc import Callable
from typing import Any

import click
import orjson
from rich.console import Console, RenderableType

out = Console(soft_wrap=not sys.stdout.isatty())
err = Console(stderr=True, soft_wrap=not sys.stderr.isatty())

WIDTH_WITHOUT_A_TERMINAL = 1000

json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def print_json(document: Any) -> None:
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2, default=str).decode())


def print_wide(table_or_tree: RenderableType) -> None:
    """Prints as wide as the terminal. Without a terminal nothing is wrapped, so that `grep` finds whole lines."""
    (out if out.is_terminal else Console(width=WIDTH_WITHOUT_A_TERMINAL)).print(table_or_tree)
