"""The `schemas` table of a service: the text of every schema it has written or read, by id.

With it a service starts and works while the registry is down.
"""

from shared.schemas.contract.event_schemas import EventSchema
from shared.store.database import Pool

LARGEST_ID = 2**31 - 1


class SchemaTable:
    """Reads and adds rows of the table in one service's database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def schema_text(self, schema_id: int) -> str | None:
        if schema_id > LARGEST_ID:
            return None  # no registry gives such an id; four arbitrary bytes may be one
        text: str | None = await self._pool.fetchval("SELECT schema_text FROM schemas WHERE id = $1 LIMIT 1", schema_id)
        return text

    async def id_of(self, schema: EventSchema) -> int | None:
        schema_id: int | None = await self._pool.fetchval(
            "SELECT id FROM schemas WHERE subject = $1 AND schema_text = $2", schema.subject, schema.text
        )
        return schema_id

    async def add(self, schema_id: int, subject: str, text: str) -> None:
        await self._pool.execute(
            "INSERT INTO schemas (id, subject, schema_text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            schema_id,
            subject,
            text,
        )

    async def rows(self) -> list[tuple[int, str, str]]:
        """Returns id, subject and text of every schema in the table."""
        return [
            (row[0], row[1], row[2]) for row in await self._pool.fetch("SELECT id, subject, schema_text FROM schemas")
        ]
