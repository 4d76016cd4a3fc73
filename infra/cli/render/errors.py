"""What cannot be answered because of how it was asked: one line that says why and what to do, and exit code 2."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

import click
from rich.text import Text

from infra.cli.console import err
from shared.errors import OperatorError

Result = TypeVar("Result")


class BadInput(click.ClickException):
    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".rstrip())

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's signature
        err.print(Text("error: ", style="bold red").append(self.message, style="default"))


def reading(
    work: Coroutine[Any, Any, Result], run: Callable[[Coroutine[Any, Any, Result]], Result] = asyncio.run
) -> Result:
    """Of who only reads: a stack that is not there is the wrong place to ask, and nothing has changed."""
    import asyncpg

    from shared.codec import Undecodable
    from shared.database import AWAY

    try:
        return run(work)
    except OperatorError as error:
        raise BadInput(error.message, error.hint) from error
    except Undecodable as error:
        raise OperatorError(f"An event cannot be read: {error}.", "Find out which with: till verify") from error
    except asyncpg.UndefinedTableError as error:
        raise BadInput("No shop of this release has run on this database.", "Start one with: till up") from error
    except AWAY as error:
        raise BadInput(f"PostgreSQL went away: {error!r}.", "Start it with: till up. Nothing was changed.") from error
