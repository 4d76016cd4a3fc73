"""The lake holds what the topics hold: bronze every message, silver and quarantine together every event of it once.

The lake is queried in SQL, without Spark, up to the offsets that its own commits say it has reached.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from services.operations.verify.findings import CheckContext, Findings, Violation
from shared.messaging.topic_reader import open_reader

NAME, ABOUT = "lake = topics", "bronze has every offset, silver and quarantine every event of it once"
BRONZE, QUARANTINE = "bronze.events", "silver.quarantine"
VIOLATIONS_PER_QUERY = 20

LakeOffsets = Mapping[str, Mapping[str, int]]
"""The next offset that a table will read, by topic and partition."""


class Lake(Protocol):
    """Reads the tables of the lake."""

    def reached(self, table: str) -> LakeOffsets | None:
        """Returns how far the table has been written; None where there is no such table."""
        ...

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]: ...


# An event that was delivered twice is in silver once. So a message is missing only if silver has its event nowhere.
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
NOT_IN_BRONZE = """
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


async def check(context: CheckContext) -> list[Findings]:
    findings = Findings(NAME, ABOUT, unit="messages")
    lake = context.open_lake() if context.open_lake else None
    if lake is None or (bronze := lake.reached(BRONZE)) is None:
        findings.notes.append("There is no lake yet. Fill it with: till lake run")
        return [findings]
    await _check_bronze(context, lake, bronze, findings)
    for service in context.services:
        topic = service.decider.topic
        silver = lake.reached(_silver_table(topic))
        if silver is None:
            findings.notes.append(f"There is no {_silver_table(topic)} yet.")
        else:
            _check_silver(lake, topic, bronze, silver, findings)
    return [findings]


def _silver_table(topic: str) -> str:
    return f"silver.{topic.replace('.', '_')}"


def _cut(topic: str, *reached: LakeOffsets) -> str:
    """Returns a SQL condition for the messages that all of these tables have read."""
    partitions = set.intersection(*(set(offsets.get(topic, {})) for offsets in reached))
    parts = [f'partition = {p} AND "offset" < {min(it[topic][p] for it in reached)}' for p in sorted(partitions)]
    return " OR ".join(f"({part})" for part in parts) or "false"


async def _check_bronze(context: CheckContext, lake: Lake, reached: LakeOffsets, findings: Findings) -> None:
    cut = " OR ".join(f"(topic = '{topic}' AND ({_cut(topic, reached)}))" for topic in reached) or "false"
    counts = {(topic, p): (count, distinct) for topic, p, count, distinct in lake.rows(COUNTS.format(cut=cut))}
    behind = 0
    for topic, partitions in reached.items():
        async with open_reader(context.settings, topic) as reader:
            first, last = await reader.beginnings(), await reader.ends()
        for partition, begin in first.items():
            end = partitions.get(str(partition.partition), 0)
            behind += max(0, last[partition] - end)
            count, distinct = counts.get((topic, partition.partition), (0, 0))
            findings.looked_at += count
            context.report(count)
            place = f"{topic}/{partition.partition}"
            if end > last[partition]:
                what = f"Bronze says it has read up to {end}; the topic ends at {last[partition]}."
                findings.add(Violation(what, position=f"{place}/{last[partition]}", look="till lake tables"))
            if count > distinct:
                what = f"Bronze has {count - distinct} messages of {place} twice."
                findings.add(Violation(what, position=place, look=_query_of_duplicates(place)))
            if distinct < end - begin:
                _add_holes(lake, topic, partition.partition, begin, end, findings)
    if behind:
        findings.notes.append(f"{behind} messages are not in the lake yet.")


def _add_holes(lake: Lake, topic: str, partition: int, begin: int, end: int, findings: Findings) -> None:
    sql = HOLES.format(topic=topic, partition=partition, begin=begin, end=end, shown=VIOLATIONS_PER_QUERY)
    for first, following in lake.rows(sql):
        what = f"Bronze lacks {following - first} messages of {topic}/{partition}."
        place = f"{topic}/{partition}/{first}"
        look = f"till replay {topic} --where 'partition == {partition} and offset == {first}'"
        findings.add(Violation(what, position=place, look=look))


def _check_silver(lake: Lake, topic: str, bronze: LakeOffsets, reached: LakeOffsets, findings: Findings) -> None:
    silver, cut = _silver_table(topic), _cut(topic, bronze, reached)
    words = {"topic": topic, "silver": silver, "cut": cut, "shown": VIOLATIONS_PER_QUERY}
    words["messages"] = MESSAGES.format(**words)
    for partition, offset, event_id in lake.rows(MISSING.format(**words)):
        what = f"Event {event_id} is in bronze, and neither in {silver} nor in quarantine."
        place = f"{topic}/{partition}/{offset}"
        look = f"till replay {topic} --where \"id == '{event_id}'\""
        findings.add(Violation(what, position=place, look=look))
    for partition, offset, stream, event_id in lake.rows(NOT_IN_BRONZE.format(**words)):
        what = f"Event {event_id} is in {silver}, and not in bronze."
        findings.add(Violation(what, stream, f"{topic}/{partition}/{offset}", f"till history {stream}"))
    for event_id, stream, count in lake.rows(TWICE.format(**words)):
        what = f"Event {event_id} is in {silver} {count} times."
        findings.add(Violation(what, stream, f"event {event_id}", f"till history {stream}"))


def _query_of_duplicates(place: str) -> str:
    topic, partition = place.split("/")
    where = f"topic = '{topic}' AND partition = {partition}"
    return f'till sql "SELECT \\"offset\\", count(*) FROM bronze.events WHERE {where} GROUP BY 1 HAVING count(*) > 1"'
