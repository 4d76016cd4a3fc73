"""Group commit without a database: what waits together is worked on together, and everyone gets their own result."""

import asyncio
from collections.abc import Sequence

import pytest

from shared.store.batching import Batcher

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Commits:
    """Doubles numbers in batches that take a while, and refuses odd ones."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []

    async def __call__(self, key: str, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append((key, list(items)))
        await asyncio.sleep(0.001)
        if 666 in items:
            raise OSError("the whole batch fails")
        return [ValueError(item) if item % 2 else 2 * item for item in items]


async def test_callers_that_arrive_during_a_batch_share_the_next_one() -> None:
    commits = Commits()
    batcher: Batcher[int, int] = Batcher(commits)
    first = asyncio.create_task(batcher.submit("a", 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(batcher.submit("a", n)) for n in (4, 6, 8)]
    assert await asyncio.gather(first, *others) == [4, 8, 12, 16]
    assert commits.batches == [("a", [2]), ("a", [4, 6, 8])]


async def test_keys_do_not_wait_for_each_other() -> None:
    commits = Commits()
    batcher: Batcher[int, int] = Batcher(commits)
    assert await asyncio.gather(*(batcher.submit(*it) for it in (("a", 2), ("b", 4)))) == [4, 8]
    assert commits.batches == [("a", [2]), ("b", [4])]


async def test_a_batch_has_a_largest_size() -> None:
    commits = Commits()
    batcher: Batcher[int, int] = Batcher(commits, largest=2)
    await asyncio.gather(*(batcher.submit("a", n) for n in (2, 4, 6)))
    assert commits.batches == [("a", [2, 4]), ("a", [6])]


async def test_an_error_of_one_item_is_raised_in_its_caller_alone() -> None:
    batcher: Batcher[int, int] = Batcher(Commits())
    outcomes = await asyncio.gather(*(batcher.submit("a", n) for n in (2, 3)), return_exceptions=True)
    assert outcomes[0] == 4
    assert isinstance(outcomes[1], ValueError)


async def test_an_error_of_the_whole_batch_is_raised_in_every_caller_and_the_next_batch_works() -> None:
    batcher: Batcher[int, int] = Batcher(Commits())
    outcomes = await asyncio.gather(*(batcher.submit("a", n) for n in (2, 666)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OSError, OSError]
    assert await batcher.submit("a", 2) == 4


async def test_a_cancelled_caller_takes_no_item_with_it_and_finish_waits_for_all() -> None:
    commits = Commits()
    batcher: Batcher[int, int] = Batcher(commits)
    leaving, staying = (asyncio.create_task(batcher.submit("a", n)) for n in (2, 4))
    await asyncio.sleep(0)
    leaving.cancel()
    await batcher.finish()
    assert commits.batches == [("a", [2, 4])]
    assert await staying == 8
