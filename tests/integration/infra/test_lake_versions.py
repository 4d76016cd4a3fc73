"""The version of a Delta table that belongs to a moment is the oldest that has every message up to it."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow
import pytest
from deltalake import CommitProperties, write_deltalake
from uuid_utils import uuid7

from infra.lake.versions import TableVersion, lake_versions, offsets_at
from infra.settings import Settings
from shared.envelope import millis
from tests.integration.shared.topics import Record, create_topics, delete_topics, send

pytestmark = pytest.mark.anyio

NOON = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
async def topic(stack: Settings) -> AsyncIterator[str]:
    """A topic with two partitions: five messages from noon on, one a second, and one two seconds after noon."""
    name = f"moments-{uuid7().hex[-12:]}"
    await create_topics(stack, {name: 2})
    dates = [(0, second) for second in range(5)] + [(1, 2)]
    send(stack, name, [Record(partition, 0, b"k", b"v", (), millis(NOON + s * SECOND)) for partition, s in dates])
    yield name
    await delete_topics(stack, [name])


@pytest.mark.parametrize(
    ("seconds", "first", "second"), [(-1, 0, 0), (0, 1, 0), (1.9, 2, 0), (2, 3, 1), (4, 5, 1), (99, 5, 1)]
)
async def test_offsets_of_a_moment_are_those_of_the_first_messages_after_it(
    stack: Settings, topic: str, seconds: float, first: int, second: int
) -> None:
    found = await offsets_at(stack, [topic], NOON + seconds * SECOND)
    assert found == {topic: {"0": first, "1": second}}


async def test_the_version_of_a_moment_is_the_oldest_that_has_all_messages_before_it(
    stack: Settings, topic: str, tmp_path: Path
) -> None:
    lake = stack.model_copy(update={"lake": str(tmp_path)})
    assert await lake_versions(lake, [topic], NOON) == [], "there is no lake, and nothing is wrong with that"
    for reached in ({"0": 1, "1": 0}, {"0": 3, "1": 1}, {"0": 5, "1": 1}):
        metadata = json.dumps({"query": "ingest", "generation": "g", "batch": 1, "offsets": {topic: reached}})
        write_deltalake(
            tmp_path / "bronze" / "events",
            pyarrow.table({"n": [1]}),
            mode="append",
            commit_properties=CommitProperties(custom_metadata={"userMetadata": metadata}),
        )
    versions = {s: (await lake_versions(lake, [topic], NOON + s * SECOND))[0].version for s in (0, 1, 2, 4)}
    assert versions == {0: 0, 1: 1, 2: 1, 4: 2}
    send(stack, topic, [Record(0, 0, b"k", b"v", (), millis(NOON + 9 * SECOND))])
    assert await lake_versions(lake, [topic], NOON + 9 * SECOND) == [TableVersion("bronze.events", None, 2)]
