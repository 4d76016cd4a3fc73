"""Positions in Kafka: how many messages they stand for, and whether one set of them has reached another."""

from collections.abc import Iterable, Mapping

Offsets = Mapping[str, Mapping[str, int]]
"""The next offset to be read, by topic and partition. Partitions are strings, as in JSON and in Spark's checkpoints."""


def total(offsets: Offsets) -> int:
    """Counts the messages before these offsets."""
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


def covers(offsets: Offsets, wanted: Offsets) -> bool:
    """Tells whether everything before the wanted offsets has been read. An unread partition is at offset 0."""
    return all(
        offsets.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in wanted.items()
        for partition, offset in partitions.items()
    )


def common(reached: Iterable[Offsets]) -> Offsets:
    """Returns the offsets that all of these have reached: the lowest of each partition."""
    every = list(reached)
    places = {(topic, partition) for offsets in every for topic, parts in offsets.items() for partition in parts}
    lowest: dict[str, dict[str, int]] = {}
    for topic, partition in places:
        lowest.setdefault(topic, {})[partition] = min(o.get(topic, {}).get(partition, 0) for o in every)
    return lowest
