"""The lake has what the topics have: bronze every message, silver and quarantine every event of it once.

Asked in SQL of whoever reads the lake, without Spark, and up to the offsets that its own commits say it has reached.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from services.replay.checks.findings import Findings, Violation, World
from services.replay.topics import begins, ends
from shared.refill import open_reader

NAME, ABOUT = "lake = topics", "bronze has every offset, silver and quarantine every event of it once"
BRONZE, QUARANTINE = "bronze.events", "silver.quarantine"
SHOWN = 20

Offsets = Mapping[str, Mapping[str, int]]


class Lake(Protocol):
    def reached(self, table: str) -> Offsets | None:
        """By topic and partition, the next offset that the table would read; None where there is no such table."""
        ...

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]: ...


# An event that came twice is in silver once: missing is a message whose event silver has nowhere.
MESSAGES = """
SELECT partition, "offset", decode(list_filter(headers, lambda h: h.key = 'ce_id')[1].value) AS event_id
FROM bronze.events WHERE topic = '{topic}' AND ({cut})
"""
MISSING = """
SELECT partition, "offset", event_id FROM ({messages}) m
WHERE NOT EXISTS (SELECT 1 FROM {silver} s WHERE s.event_id = m.event_id)
  AND NOT EXISTS (SELECT 1 FROM silver.quarantine q
                  WHERE q.topic = '{topic}' AND q.partition = m.partition AND q."offset" = m."offset")
ORDER BY 1, 2 LIMIT {shown}
"""
STRANGERS = """
SELECT partition, "offset", stream_id, event_id FROM {silver} s
WHERE NOT EXISTS (SELECT 1 FROM ({messages}) m WHERE m.event_id = s.event_id) AND ({cut}) ORDER BY 1, 2 LIMIT {shown}
"""
TWICE = """
SELECT event_id, any_value(stream_id), count(*) FROM {silver} GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT {shown}
"""
COUNTS = """
SELECT topic, partition, count(*), count(DISTINCT "offset") FROM bronze.events WHERE {cut} GROUP BY 1, 2
"""
HOLES = """
SELECT "offset" + 1, following FROM (
    SELECT "offset", lead("offset", 1, {end}) OVER (ORDER BY "offset") AS following FROM (
        SELECT {begin} - 1 AS "offset"
        UNION ALL SELECT "offset" FROM bronze.events WHERE topic = '{topic}' AND partition = {partition})
    WHERE "offset" < {end})
WHERE following > "offset" + 1 ORDER BY 1 LIMIT {shown}
"""


async def check(world: World) -> list[Findings]:
    findings = Findings(NAME, ABOUT, unit="messages")
    lake = world.lake() if world.lake else None
    if lake is None or (bronze := lake.reached(BRONZE)) is None:
        findings.notes.append("There is no lake yet: till lake run makes one.")
        return [findings]
    await _bronze(world, lake, bronze, findings)
    for service in world.services:
        topic = service.decider.topic
        silver = lake.reached(_silver(topic))
        if silver is None:
            findings.notes.append(f"There is no {_silver(topic)} yet.")
        else:
            _check_silver(lake, topic, bronze, silver, findings)
    return [findings]


def _silver(topic: str) -> str:
    return f"silver.{topic.replace('.', '_')}"


def _cut(topic: str, *reached: Offsets) -> str:
    """What all of these have read."""
    partitions = set.intersection(*(set(offsets.get(topic, {})) for offsets in reached))
    parts = [f'partition = {p} AND "offset" < {min(it[topic][p] for it in reached)}' for p in sorted(partitions)]
    return " OR ".join(f"({part})" for part in parts) or "false"


async def _bronze(world: World, lake: Lake, reached: Offsets, findings: Findings) -> None:
    cut = " OR ".join(f"(topic = '{topic}' AND ({_cut(topic, reached)}))" for topic in reached) or "false"
    counts = {(topic, p): (count, distinct) for topic, p, count, distinct in lake.rows(COUNTS.format(cut=cut))}
    behind = 0
    for topic, partitions in reached.items():
        async with open_reader(world.settings, topic) as kafka:
            first, last = await begins(kafka), await ends(kafka)
        for partition, begin in first.items():
            end = partitions.get(str(partition.partition), 0)
            behind += max(0, last[partition] - end)
            count, distinct = counts.get((topic, partition.partition), (0, 0))
            findings.looked_at += count
            world.tell(count)
            place = f"{topic}/{partition.partition}"
            if end > last[partition]:
                what = f"Bronze says it has read up to {end}; the topic ends at {last[partition]}."
                findings.add(Violation(what, position=f"{place}/{last[partition]}", look="till lake tables"))
            if count > distinct:
                what = f"Bronze has {count - distinct} messages of {place} twice."
                findings.add(Violation(what, position=place, look=_sql(place)))
            if distinct < end - begin:
                _holes(lake, topic, partition.partition, begin, end, findings)
    if behind:
        findings.notes.append(f"{behind} messages are not in the lake yet.")


def _holes(lake: Lake, topic: str, partition: int, begin: int, end: int, findings: Findings) -> None:
    sql = HOLES.format(topic=topic, partition=partition, begin=begin, end=end, shown=SHOWN)
    for first, following in lake.rows(sql):
        what = f"Bronze lacks {following - first} messages of {topic}/{partition}."
        place = f"{topic}/{partition}/{first}"
        look = f"till replay {topic} --where 'partition == {partition} and offset == {first}'"
        findings.add(Violation(what, position=place, look=look))


def _check_silver(lake: Lake, topic: str, bronze: Offsets, reached: Offsets, findings: Findings) -> None:
    silver, cut = _silver(topic), _cut(topic, bronze, reached)
    words = {"topic": topic, "silver": silver, "cut": cut, "shown": SHOWN}
    words["messages"] = MESSAGES.format(**words)
    for partition, offset, event_id in lake.rows(MISSING.format(**words)):
        what = f"Event {event_id} is in bronze, and neither in {silver} nor in quarantine."
        place = f"{topic}/{partition}/{offset}"
        look = f"till replay {topic} --where \"id == '{event_id}'\""
        findings.add(Violation(what, position=place, look=look))
    for partition, offset, stream, event_id in lake.rows(STRANGERS.format(**words)):
        what = f"Event {event_id} is in {silver}, and not in bronze."
        findings.add(Violation(what, stream, f"{topic}/{partition}/{offset}", f"till history {stream}"))
    for event_id, stream, count in lake.rows(TWICE.format(**words)):
        what = f"Event {event_id} is in {silver} {count} times."
        findings.add(Violation(what, stream, f"event {event_id}", f"till history {stream}"))


def _sql(place: str) -> str:
    topic, partition = place.split("/")
    where = f"topic = '{topic}' AND partition = {partition}"
    return f'till sql "SELECT \\"offset\\", count(*) FROM bronze.events WHERE {where} GROUP BY 1 HAVING count(*) > 1"'
