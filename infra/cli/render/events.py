"""How events, fields and their changes are told: in lines for people, in documents for machines."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.text import Text

from infra.cli.console import out
from infra.cli.moments import ago, span
from shared.money import Money

if TYPE_CHECKING:
    from services.replay.difference import Change
    from shared.envelope import Recorded

NOTHING = "none"
WIDE = 1000


def show(table_or_tree: RenderableType) -> None:
    """As wide as the terminal; elsewhere nothing is wrapped, so that a line can be searched for."""
    (out if out.is_terminal else Console(width=WIDE)).print(table_or_tree)


def precisely(moment: datetime) -> str:
    """To the millisecond: services answer each other within a few."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


def when(moment: datetime) -> Text:
    return Text.assemble(precisely(moment), (f", {ago(moment)}", "dim"))


def since(beginning: datetime, moment: datetime) -> Text:
    """The time of day, and how long after the beginning: what a story is told by."""
    seconds = (moment - beginning).total_seconds()
    sign = "-" if seconds < 0 else "+"
    after = f"{abs(seconds) * 1000:.0f} ms" if abs(seconds) < 1 else f"{abs(seconds):.1f} s"
    if abs(seconds) >= 60:
        after = span(abs(seconds))
    day = "" if moment.date() == beginning.date() else f"{moment:%Y-%m-%d} "
    told = f"{day}{moment.astimezone(UTC):%H:%M:%S}.{moment.microsecond // 1000:03}"
    return Text.assemble(told, (f"  {sign}{after}", "dim"))


def by(actor: str) -> str:
    """Who acted, where that is not the service whose stream it is."""
    return "" if actor.startswith("service:") else f"  by {actor}"


def words(value: Any) -> str:
    """A field's value in a few words."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case Money() | int() | str():
            return str(value)
        case datetime():
            return precisely(value)
        case {"quantity": quantity, "unit_price": price}:
            name = value.get("name", "")
            return f"{quantity} x {name} at {words(price)}" if name else f"{quantity} at {words(price)}"
        case {"amount": int(amount), "currency": str(currency)}:
            return str(Money(amount, currency))
        case dict():
            return "; ".join(f"{key}: {words(inner)}" for key, inner in value.items()) or NOTHING
        case list() | tuple():
            return ", ".join(words(one) for one in value) or NOTHING
        case _:
            return str(value)


def changes_told(changes: "Iterable[Change]", indent: str) -> Iterable[Text]:
    changes = list(changes)
    width = max((len(change.field) for change in changes), default=0)
    for change in changes:
        line = Text(f"{indent}{change.field:<{width}}  ", "dim")
        if change.before is not None:
            line.append(words(change.before), "red").append(" → ", "dim")
        yield line.append(words(change.after), "green" if change.after is not None else "dim")


def event_document(recorded: "Recorded") -> dict[str, Any]:
    """What surrounds an event, as `GET /v1/orders/{id}/events` tells it."""
    return {
        "id": recorded.event_id,
        "type": recorded.type,
        "stream": recorded.stream_id,
        "version": recorded.version,
        "time": recorded.time,
        "actor": recorded.actor,
        "correlation_id": recorded.correlation_id,
        "caused_by": recorded.causation_id,
    }


def change_documents(changes: "Iterable[Change]") -> list[dict[str, Any]]:
    return [{"field": change.field, "before": change.before, "after": change.after} for change in changes]
