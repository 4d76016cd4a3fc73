"""Starts the Java servers once after their installation, so that they write their class archives (see jvm.py).

Otherwise the first start of a shop would be slow, and its first stop would write the archives.
"""

import asyncio

from infra.local.servers import kafka, registry
from infra.local.stack import up
from infra.local.throwaway import settings_of, throwaway
from infra.settings import Settings


async def archive_classes(settings: Settings) -> bool:
    """Writes the archives. Returns False if they are there already."""
    programs = await asyncio.gather(kafka.java_program(settings), registry.java_program(settings))
    if all(program.archive.exists() for program in programs):
        return False
    with throwaway() as environment:
        await up(settings_of(environment | {"TILL_CACHE": str(settings.cache)}), servers_only=True)
    return True
