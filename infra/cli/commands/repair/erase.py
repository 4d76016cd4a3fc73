"""`till erase`: forgets a customer by crypto-shredding: the key to their personal data is deleted."""

import asyncio
from dataclasses import asdict, dataclass

import click
from rich.text import Text

from infra.cli.render.console import json_option, out, print_json
from infra.settings import Settings
from shared.errors import OperatorError


@dataclass(frozen=True)
class Erasure:
    customer_id: str
    erased: bool
    """False if there was no key to delete."""
    checkouts: int
    unreadable: list[str]
    """The fields of events that can no longer be read, as topic, type and field."""


@click.command()
@click.argument("customer")
@json_option
def erase(customer: str, as_json: bool) -> None:
    """Delete the key of CUSTOMER: name and address become unreadable, wherever they were copied.

    They are encrypted in every event, so this covers the stores, the topics, dead letters, the lake and all their
    backups. Running processes cache no key, so it takes effect immediately. It does not cover backups of the schema
    `vault`, nor PostgreSQL's WAL and dead rows until they are recycled: with these and the master key the data can
    still be read. Delete such backups within the time that the law allows for an erasure.

    \b
    Example:
      till erase 0197f3a2-6f0e-7c3b-9d51-2f6f0c8e1b7a
    """
    done = asyncio.run(_erase(Settings.load(), customer))
    if as_json:
        print_json(asdict(done))
        return
    if not done.erased:
        out.print(f"{customer} has no key: they were erased before, or never checked out. Nothing was changed.")
        return
    out.print(f"The key of {customer} is deleted. Unreadable from now on, in {done.checkouts} checkouts:")
    for field in done.unreadable:
        out.print(Text(f"  {field}"))


async def _erase(settings: Settings, customer: str) -> Erasure:
    import asyncpg

    from services.common.vault import erase as erase_key
    from services.operations.reading.stores import no_shop
    from shared.store.database import CONNECTION_ERRORS, open_pool

    try:
        async with await open_pool(settings, "cart", size=2) as pool:
            # No index is needed: this runs once for each customer who asks to be forgotten.
            written = await pool.fetch("SELECT type, count(*) FROM events WHERE actor = $1 GROUP BY type", customer)
            erased = await erase_key(pool, customer)
    except asyncpg.UndefinedTableError as error:
        raise no_shop() from error
    except CONNECTION_ERRORS as error:
        raise OperatorError(f"PostgreSQL went away: {error!r}", "Run it again, which is always safe.") from error
    events = dict(map(tuple, written))
    if "CartOpened" not in events and not erased:
        raise OperatorError(
            f"There is no customer {customer}.", "CUSTOMER is the customer_id of their session and orders."
        )
    return Erasure(customer, erased, events.get("CartCheckedOut", 0), _sealed_fields())


def _sealed_fields() -> list[str]:
    from services.operations.history.fields import PERSONAL
    from shared.schemas.contract.event_schemas import load_schemas

    newest = {schema.record: schema for schema in load_schemas().all}
    return [
        f"{schema.topic}  {schema.type}.{field['name']}"
        for schema in newest.values()
        for field in schema.definition["fields"]
        if field["name"] in PERSONAL
    ]
