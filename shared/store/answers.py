"""Idempotent answers: a request with an Idempotency-Key is answered once, and its answer repeated for a retry."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from shared.decider import Decided
from shared.envelope import now
from shared.errors import KeyReused, Refused
from shared.store.database import CONNECTION_ERRORS, Pool, raising_unavailable

log = logging.getLogger(__name__)

CLEAN_UP_SECONDS = 3600.0


class StoredAnswer(NamedTuple):
    """An HTTP answer as a row of the table `answers`. `request` is the digest of the request, `headers` are packed."""

    actor: str
    key: str
    request: bytes
    status: int
    headers: bytes
    body: bytes
    time: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The stored answer to a keyed request; `replayed` if an earlier request with the same key led to it."""

    answer: StoredAnswer
    replayed: bool


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an Idempotency-Key. Its answer is stored in the transaction of its events."""

    key: str
    digest: bytes
    render: Callable[[Decided[Any, Any] | Refused], tuple[int, bytes, bytes]]
    """Gives status, packed headers and body of the answer. Called before the commit, once per attempt."""

    def answer(self, actor: str, outcome: Decided[Any, Any] | Refused) -> Answered:
        """Renders the answer to this outcome, to be stored and then given to the caller as it is stored."""
        return Answered(StoredAnswer(actor, self.key, self.digest, *self.render(outcome), now()), replayed=False)


async def find_answer(
    pool: Pool, actor: str, request: KeyedRequest, uncommitted: Sequence[StoredAnswer]
) -> Answered | None:
    """Returns the answer that this actor got for this key, from those about to be committed or from the table.

    Raises KeyReused if the key came with another request then.
    """
    found = next((a for a in uncommitted if (a.actor, a.key) == (actor, request.key)), None)
    if found is None:
        with raising_unavailable():
            row = await pool.fetchrow(
                "SELECT actor, key, request, status, headers, body, time FROM answers WHERE actor = $1 AND key = $2",
                actor,
                request.key,
            )
        found = StoredAnswer(*row) if row else None
    if found and found.request != request.digest:
        raise KeyReused("This Idempotency-Key was used with another request.")
    return Answered(found, replayed=True) if found else None


async def delete_old_answers(pool: Pool, days: float) -> None:
    """Deletes answers that are older than `days`, every hour until cancelled. Their keys count as new from then on."""
    while True:
        try:
            await pool.execute("DELETE FROM answers WHERE time < now() - $1 * interval '1 day'", days)
        except CONNECTION_ERRORS as error:
            log.warning("old answers were not deleted; it is tried again later", extra={"error": repr(error)})
        await asyncio.sleep(CLEAN_UP_SECONDS)
