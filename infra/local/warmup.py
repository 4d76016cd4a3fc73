"""One run of the Java servers, right after they were installed, for the archives of their classes (see jvm.py).

Without it the first start of a shop would be as slow, and its first stop write the archives.
"""

import asyncio

from infra.local import kafka, registry
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from shared.settings import Settings


async def archive_classes(settings: Settings) -> bool:
    """False if they are there already."""
    programs = await asyncio.gather(kafka.java_program(settings), registry.java_program(settings))
    if all(program.archive.exists() for program in programs):
        return False
    with throwaway() as environment:
        await up(settings_of(environment | {"TILL_CACHE": str(settings.cache)}), servers_only=True)
    return True
