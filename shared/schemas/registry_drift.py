"""Compares `schemas/` with a registry: known ids, refused schemas, and registered versions that have no file."""

import asyncio
import json
from dataclasses import dataclass

from shared.schemas.contract.checks import SchemaProblem
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.registration import refusals
from shared.schemas.registry import COMPATIBILITY, HOW_TO_CHANGE, Registry


@dataclass(frozen=True)
class RegistryDrift:
    """The result of a comparison of `schemas/` with a registry."""

    ids: dict[str, int]
    """Registry ids by schema (`cart/ItemAdded.v1`), for schemas that are registered."""
    problems: list[SchemaProblem]


async def compare_with_registry(registry: Registry, schemas: Schemas) -> RegistryDrift:
    """Compares every schema with the registry. Nothing is registered or changed."""
    level = await registry.compatibility()
    wrong_level = SchemaProblem(
        "registry", f"its compatibility is {level}, not {COMPATIBILITY}.", "Set it with: till schemas push"
    )
    compared = await asyncio.gather(*(_compare_record(registry, versions) for versions in schemas.records.values()))
    return RegistryDrift(
        ids={name: schema_id for record in compared for name, schema_id in record.ids.items()},
        problems=[wrong_level] * (level != COMPATIBILITY) + [p for record in compared for p in record.problems],
    )


async def _compare_record(registry: Registry, versions: list[EventSchema]) -> RegistryDrift:
    ids: dict[str, int] = {}
    problems: list[SchemaProblem] = []
    for schema in versions:
        schema_id = await registry.lookup(schema)
        if schema_id is not None:
            ids[str(schema)] = schema_id
        elif not await registry.accepts(schema):
            reasons = await refusals(registry, schema) or ["the registry would refuse it without giving a reason."]
            problems += [SchemaProblem(str(schema), reason, HOW_TO_CHANGE) for reason in reasons]
    return RegistryDrift(ids, problems + await _unknown_versions(registry, versions))


async def _unknown_versions(registry: Registry, versions: list[EventSchema]) -> list[SchemaProblem]:
    subject = versions[-1].subject
    own = [schema.definition for schema in versions]
    return [
        SchemaProblem(
            str(versions[-1]),
            f"version {number} of {subject} in the registry is not in schemas/.",
            "Either this checkout is outdated, or a file was changed after it was registered: make that a new version.",
        )
        for number, text in (await registry.versions(subject)).items()
        if json.loads(text) not in own
    ]
