"""Finds the version of each Delta table that belongs to a moment of the services, by Kafka offsets."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from infra.settings import Settings
from shared.messaging.kafka import kafka_errors
from shared.messaging.topic_reader import open_reader

Offsets = dict[str, dict[str, int]]
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class TableVersion:
    name: str
    version: int | None
    """The oldest version that has all events up to the moment; None where the lake has not come that far."""
    newest: int


async def lake_versions(settings: Settings, topics: list[str], at: datetime) -> list[TableVersion]:
    """Returns the versions of all tables; none where there is no lake yet."""
    from analytics.lake import LakeFiles
    from analytics.log.progress import version_covering

    lake = LakeFiles(settings)
    names = lake.tables()
    wanted = await offsets_at(settings, topics, at) if names else {}
    found = []
    for name in names:
        version = version_covering(lake, name, wanted)
        newest = next(lake.log(name).versions(1)).number
        found.append(TableVersion(name, version.number if version else None, newest))
    return found


async def offsets_at(settings: Settings, topics: list[str], at: datetime) -> Offsets:
    """Returns the offset of the first message after the moment, by topic and partition."""
    offsets: Offsets = {}
    with kafka_errors(settings):
        async with open_reader(settings, *topics) as reader:
            for (topic, partition), offset in (await reader.offsets_at(at + MILLISECOND)).items():
                offsets.setdefault(topic, {})[str(partition)] = offset
    return offsets
