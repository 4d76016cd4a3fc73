"""Describes in a few words what changed from one version of an event to the next."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from shared.schemas.contract.event_schemas import EventSchema


def history(versions: list[EventSchema]) -> list[tuple[int, str]]:
    """Returns what changed in each version, oldest first."""
    changes = [(versions[0].version, "the first")]
    for old, new in pairwise(versions):
        changes.append((new.version, "; ".join(_changes(old.definition, new.definition)) or "new wording, same fields"))
    return changes


def type_words(kind: Any) -> str:
    match kind:
        case list():
            return " or ".join(map(type_words, kind))
        case {"type": "array", "items": items}:
            return f"array of {type_words(items)}"
        case {"type": "map", "values": values}:
            return f"map of {type_words(values)}"
        case {"name": name}:
            return str(name)
        case {"type": inner}:
            return type_words(inner)
        case _:
            return str(kind).rpartition(".")[2]


def _changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before = {field["name"]: field for field in old["fields"]}
    after = {field["name"]: field for field in new["fields"]}
    renamed = {a: name for name, f in after.items() for a in f.get("aliases", ()) if a in before and a not in after}
    for was, name in renamed.items():
        yield f"`{was}` is now `{name}`"
    for name, field in after.items():
        if name not in before and name not in renamed.values():
            yield f"`{name}` added, default `{json.dumps(field.get('default'))}`"
        elif name in before and before[name]["type"] != field["type"]:
            yield f"`{name}` changed within {type_words(field['type'])}"
    for name in before:
        if name not in after and name not in renamed:
            yield f"`{name}` dropped"
