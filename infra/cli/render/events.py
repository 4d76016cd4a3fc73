"""Events, their fields and what they changed: as lines for people, as documents for machines."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from infra.cli.render.moments import ago, precise, span
from infra.cli.render.values import SENTENCE, text

if TYPE_CHECKING:
    from services.operations.history.changes import Change
    from shared.envelope import Recorded


def words(value: Any) -> str:
    """Formats a field's value for a sentence."""
    return text(value, SENTENCE)


def when(moment: datetime) -> Text:
    return Text.assemble(precise(moment), (f", {ago(moment)}", "dim"))


def since(beginning: datetime, moment: datetime) -> Text:
    """Formats the time of day, and how long after the beginning it was."""
    seconds = (moment - beginning).total_seconds()
    sign = "-" if seconds < 0 else "+"
    after = f"{abs(seconds) * 1000:.0f} ms" if abs(seconds) < 1 else f"{abs(seconds):.1f} s"
    if abs(seconds) >= 60:
        after = span(abs(seconds))
    day = "" if moment.date() == beginning.date() else f"{moment:%Y-%m-%d} "
    time = f"{day}{moment.astimezone(UTC):%H:%M:%S}.{moment.microsecond // 1000:03}"
    return Text.assemble(time, (f"  {sign}{after}", "dim"))


def by(actor: str) -> str:
    """Names the actor, except a service: that is clear from the stream."""
    return "" if actor.startswith("service:") else f"  by {actor}"


def change_lines(changes: "Iterable[Change]", indent: str) -> Iterable[Text]:
    changes = list(changes)
    width = max((len(change.field) for change in changes), default=0)
    for change in changes:
        line = Text(f"{indent}{change.field:<{width}}  ", "dim")
        if change.before is not None:
            line.append(words(change.before), "red").append(" → ", "dim")
        yield line.append(words(change.after), "green" if change.after is not None else "dim")


def event_document(recorded: "Recorded") -> dict[str, Any]:
    """Returns an event's metadata, with the same names as `GET /v1/orders/{id}/events`."""
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
