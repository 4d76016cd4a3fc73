"""Fixtures of the integration tests: the event loop, short retries, and a small service of tallies."""

from collections.abc import AsyncIterator, Iterator

import pytest

from infra.settings import Settings
from tests.integration.shared.tallies import Tallies, new_tallies


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def short_retries() -> Iterator[None]:
    """Makes consumers and relays retry sooner than in a shop."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("shared.messaging.consumer.RETRY_SECONDS", 0.1)
        patched.setattr("shared.messaging.relay.RETRY_SECONDS", 0.1)
        yield


@pytest.fixture
async def tallies(stack: Settings) -> AsyncIterator[Tallies]:
    async with new_tallies(stack) as tallies:
        yield tallies
