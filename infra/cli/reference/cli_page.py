"""docs/cli.md, written from the commands' own help: `python -m infra.cli.reference`."""

from collections.abc import Iterator
from typing import Any

import click

from infra.cli import till


def page() -> str:
    return "# The command line\n\nWritten by `make docs` from the commands' own help.\n" + "".join(
        f"\n## {name}\n\n```text\n{help_text}\n```\n" for name, help_text in _commands(till, "till")
    )


def _commands(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    settings: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100, **command.context_settings}
    context = click.Context(command, parent, name, **settings)
    yield context.command_path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            if found := command.get_command(context, child):
                yield from _commands(found, child, context)


if __name__ == "__main__":
    click.echo(page(), nl=False)
