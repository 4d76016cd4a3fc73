"""Prints errors: one line with the cause, and what to do. Exit code 2 if the request itself is wrong."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

import click
from rich.text import Text

from infra.cli.render.console import err
from infra.cli.render.program import callable_here
from shared.errors import OperatorError

Result = TypeVar("Result")


class BadInput(click.ClickException):
    """The request itself is wrong, or cannot be answered now. Nothing was changed."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        stop = "." if hint and message[-1] not in ".?!" else ""
        super().__init__(f"{message}{stop} {hint}".rstrip())

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's signature
        err.print(_headline(callable_here(self.message)))


def report(error: OperatorError) -> None:
    err.print(_headline(error.message))
    if error.hint:
        err.print(Text("  → ").append(callable_here(error.hint)))


def _headline(message: str) -> Text:
    return Text("error: ", style="bold red").append(message, style="default")


def run_query(
    work: Coroutine[Any, Any, Result], run: Callable[[Coroutine[Any, Any, Result]], Result] = asyncio.run
) -> Result:
    """Runs work that only reads. A stack that does not run is reported as bad input: nothing has changed."""
    import asyncpg

    from shared.schemas.codec import Undecodable
    from shared.store.database import CONNECTION_ERRORS

    try:
        return run(work)
    except OperatorError as error:
        raise BadInput(error.message, error.hint) from error
    except Undecodable as error:
        raise OperatorError(f"An event cannot be read: {error}.", "Find out which with: till verify") from error
    except asyncpg.UndefinedTableError as error:
        raise BadInput("No shop of this release has run on this database.", "Start one with: till up") from error
    except CONNECTION_ERRORS as error:
        raise BadInput(f"PostgreSQL went away: {error!r}.", "Start it with: till up. Nothing was changed.") from error
