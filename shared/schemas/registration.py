"""Registers the schemas of `schemas/` with the registry, and explains what the registry refuses."""

import json

from shared.schemas.contract.compatibility import Side, incompatibilities
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.registry import HOW_TO_CHANGE, Registry, SchemaRefused


async def push(registry: Registry, schemas: Schemas) -> dict[str, int]:
    """Registers every schema, oldest version first, after setting the compatibility to FULL_TRANSITIVE."""
    await registry.require_compatibility()
    return {
        f"{schema.record}.v{schema.version}": await _register(registry, schema)
        for schema in sorted(schemas.all, key=lambda s: (s.record, s.version))
    }


async def _register(registry: Registry, schema: EventSchema) -> int:
    try:
        return await registry.lookup(schema) or await registry.register(schema)
    except SchemaRefused as refusal:
        reasons = await refusals(registry, schema)
        if not reasons:
            raise
        explained = "".join(f"\n    {reason}" for reason in reasons)
        raise SchemaRefused(f"The schema registry refuses {schema}:{explained}", HOW_TO_CHANGE) from refusal


async def refusals(registry: Registry, schema: EventSchema) -> list[str]:
    """Explains why this schema is incompatible with the versions registered under its subject."""
    registered = await registry.versions(schema.subject)
    own = Side.parse(f"v{schema.version}", schema.definition)
    return [
        f"not compatible with version {number} in the registry: {finding}"
        for number, text in registered.items()
        for finding in incompatibilities(Side.parse(f"that version {number}", json.loads(text)), own)
    ]
