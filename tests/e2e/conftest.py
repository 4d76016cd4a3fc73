from collections.abc import Iterator

import pytest

from tests.e2e.shop import Shop, started


@pytest.fixture(scope="module")
def shop(stack_environment: dict[str, str], stack: object) -> Iterator[Shop]:
    with started(stack_environment) as shop:
        yield shop
        assert shop.stop() == 0, shop.log.read_text()
