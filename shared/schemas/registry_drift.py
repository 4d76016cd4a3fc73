"""What a registry has of `schemas/`: ids, what it would refuse, and what it has that is not from here."""

import asyncio
import json
from dataclasses import dataclass

from shared.contract import Problem
from shared.registry import COMPATIBILITY, HOW_TO_CHANGE, Registry, refusals
from shared.schemas import EventSchema, Schemas


@dataclass(frozen=True)
class Registered:
    ids: dict[str, int]
    """By schema (`cart/ItemAdded.v1`), of those it knows."""
    problems: list[Problem]


async def compare(registry: Registry, schemas: Schemas) -> Registered:
    """Asks only; nothing is registered or changed."""
    level = await registry.compatibility()
    wrong_level = Problem(
        "registry", f"its compatibility is {level}, not {COMPATIBILITY}.", "Set it with: till schemas push"
    )
    compared = await asyncio.gather(*(_record(registry, versions) for versions in schemas.records.values()))
    return Registered(
        ids={name: schema_id for record in compared for name, schema_id in record.ids.items()},
        problems=[wrong_level] * (level != COMPATIBILITY) + [p for record in compared for p in record.problems],
    )


async def _record(registry: Registry, versions: list[EventSchema]) -> Registered:
    ids: dict[str, int] = {}
    problems: list[Problem] = []
    for schema in versions:
        schema_id = await registry.lookup(schema)
        if schema_id is not None:
            ids[str(schema)] = schema_id
        elif not await registry.accepts(schema):
            reasons = await refusals(registry, schema) or ["the registry would refuse it, and does not say why."]
            problems += [Problem(str(schema), reason, HOW_TO_CHANGE) for reason in reasons]
    return Registered(ids, problems + await _strangers(registry, versions))


async def _strangers(registry: Registry, versions: list[EventSchema]) -> list[Problem]:
    subject = versions[-1].subject
    ours = [schema.definition for schema in versions]
    return [
        Problem(
            str(versions[-1]),
            f"version {number} of {subject} in the registry is not in schemas/.",
            "Either this checkout is behind, or a file was changed after it was registered: make that a new version.",
        )
        for number, text in (await registry.versions(subject)).items()
        if json.loads(text) not in ours
    ]
