"""`till settings`: prints every setting with its value and source. A secret is never printed."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import click
from dotenv import dotenv_values
from pydantic import SecretStr
from rich.text import Text

from infra.cli.reference.settings_page import grouped, page
from infra.cli.render.console import json_option, out, print_json
from infra.cli.render.values import text
from infra.settings import Settings
from shared.settings import PREFIX, default_home

MASK = "********"
URL_WITH_PASSWORD = re.compile(r"(?P<user>[\w+.-]+://[^:/@]*):[^/@]*@(?P<host>[^?#@]*)")


@dataclass(frozen=True)
class Setting:
    variable: str
    value: Any
    source: str
    group: str
    description: str


@click.command()
@json_option
@click.option("--markdown", is_flag=True, help="Print the reference page, docs/settings.md.")
def settings(as_json: bool, markdown: bool) -> None:
    """Print every setting with its value and source. Secrets are masked.

    \b
    Sources, strongest first:
      environment    a variable TILL_... of this process
      .env           in the working directory
      till.env       in TILL_HOME, written by `till up`
      derived        computed from other settings
      default        see docs/settings.md

    \b
    Examples:
      till settings
      TILL_SHOP_PORT=9000 till settings --json
    """
    if as_json and markdown:
        raise click.UsageError("--json and --markdown exclude each other.")
    if markdown:
        click.echo(page(), nl=False)
        return
    found = list(all_settings(Settings.load()))
    if as_json:
        print_json([asdict(setting) for setting in found])
        return
    for group, members in groupby(found, key=lambda setting: setting.group):
        out.print(Text(group, style="bold"))
        for setting in members:
            out.print(_line(setting))


def all_settings(loaded: Settings) -> Iterator[Setting]:
    named_in = _variables_by_source()
    for group, names in grouped():
        for name in names:
            field, value = Settings.model_fields[name], getattr(loaded, name)
            variable = f"{PREFIX}{name.upper()}"
            if name in loaded.model_fields_set:
                source = next(source for source, variables in named_in.items() if variable in variables)
            elif field.default_factory or value == field.default:
                source = "default"
            else:
                source = "derived"
            yield Setting(variable, masked(value), source, group, field.description or "")


def _variables_by_source() -> dict[str, set[str]]:
    """Returns the variables that each source sets, strongest source first. Only `Settings` reads their values."""
    sources: dict[str, Iterable[str]] = {
        "environment": os.environ,
        ".env": dotenv_values(".env"),
        "till.env": dotenv_values(default_home() / "till.env"),
    }
    return {source: {name.upper() for name in names} for source, names in sources.items()}


def masked(value: Any) -> Any:
    """Hides a secret, and the password in a URL."""
    is_secret = isinstance(value, SecretStr)
    content = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if url := URL_WITH_PASSWORD.fullmatch(content):
        return f"{url['user']}:{MASK}@{url['host']}"
    if is_secret or ("://" in content and "@" in content):
        return MASK if content else ""
    return value


def _line(setting: Setting) -> Text:
    return Text.assemble(f"  {setting.variable:<32}", (f"{setting.source:<13}", "dim"), text(setting.value))
