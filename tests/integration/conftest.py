"""What the tests of the kernel share: an event loop, and a service of tallies with a topic and a schema of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from shared.settings import Settings
from tests.integration.kit import Tallies, new_tallies


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def impatience() -> Iterator[None]:
    """Whatever is away is looked for again sooner than in a shop."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("shared.consumer.RETRY_SECONDS", 0.1)
        patched.setattr("shared.relay.RETRY_SECONDS", 0.1)
        yield


@pytest.fixture
async def tallies(stack: Settings) -> AsyncIterator[Tallies]:
    async with new_tallies(stack) as tallies:
        yield tallies
