"""`till erase`: forget a person. Their key is deleted; what was sealed with it is noise from then on."""

import asyncio
from dataclasses import asdict, dataclass

import click
from rich.text import Text

from infra.cli.console import as_json as json_option
from infra.cli.console import out, print_json
from shared.errors import OperatorError
from shared.settings import Settings

SEALED = "recipient"


@dataclass(frozen=True)
class Erasure:
    customer_id: str
    erased: bool
    """False where there was no key (any more)."""
    checkouts: int
    unreadable: list[str]
    """Fields of events, as topic, type and field."""


@click.command()
@click.argument("customer")
@json_option
def erase(customer: str, as_json: bool) -> None:
    """Delete the key of CUSTOMER: name and address become unreadable, wherever they were copied to.

    They are encrypted in every event, so this reaches the stores, the topics, dead letters, the lake and all backups
    of these; running processes keep no key, so it holds at once. What it does not reach is a backup of the schema
    `vault` (or PostgreSQL's own WAL and dead rows, until it recycles them): who has that and the master key can read
    on. Keep such backups no longer than the law lets you take to forget.

    \b
    Example:
      till erase 0197f3a2-6f0e-7c3b-9d51-2f6f0c8e1b7a
    """
    done = asyncio.run(_erase(Settings.load(), customer))
    if as_json:
        print_json(asdict(done))
        return
    if not done.erased:
        out.print(f"{customer} has no key: erased before, or never at the till. Nothing was to be done.")
        return
    out.print(f"The key of {customer} is deleted. Unreadable for good, for {done.checkouts} checkouts:")
    for field in done.unreadable:
        out.print(Text(f"  {field}"))


async def _erase(settings: Settings, customer: str) -> Erasure:
    import asyncpg

    from shared.database import AWAY, open_pool
    from shared.vault import erase as erase_key

    try:
        async with await open_pool(settings, "cart", size=2) as pool:
            # No index: it is read once for each person who asks to be forgotten.
            written = await pool.fetch("SELECT type, count(*) FROM events WHERE actor = $1 GROUP BY type", customer)
            erased = await erase_key(pool, customer)
    except asyncpg.UndefinedTableError as error:
        raise OperatorError("No shop has ever run on this database.", "Start one with: till up") from error
    except AWAY as error:
        raise OperatorError(f"PostgreSQL went away: {error!r}", "Run it again: twice is harmless.") from error
    events = dict(map(tuple, written))
    if "CartOpened" not in events and not erased:
        raise OperatorError(f"There is no customer {customer}.", "It is the customer_id of their session and orders.")
    return Erasure(customer, erased, events.get("CartCheckedOut", 0), _sealed_fields())


def _sealed_fields() -> list[str]:
    from shared.schemas import load_schemas

    newest = {schema.record: schema for schema in load_schemas().all}
    return [
        f"{schema.topic}  {schema.type}.{SEALED}"
        for schema in newest.values()
        if any(field["name"] == SEALED for field in schema.definition["fields"])
    ]
