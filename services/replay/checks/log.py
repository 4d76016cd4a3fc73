"""I3: store and topic are the same, byte for byte, with keys, headers and partitions; each stream in order.

Both are read once, side by side and in step by time, so that only what one has and the other has not (yet) is in
memory. Bytes are compared as they are: nothing is decoded.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from services.replay.checks.findings import Findings, Violation, World
from services.replay.targets import Store
from services.replay.topics import at_moment, begins, between, ends
from shared.envelope import EPOCH, Recorded, cloud_event_headers, millis
from shared.refill import open_reader

NAME, ABOUT = "store = topic", "every event, byte for byte; versions 1..n in the order of offsets"
CHUNK = 10_000
STRAYS = 50_000
LOOK_SECONDS = 0.2
SEPARATOR = b"\x1f"
BLANK = Recorded("", 0, "", "", EPOCH, "", "", "", "", b"")
HEADERS = tuple(name for name, _ in cloud_event_headers(BLANK, ""))
PARTS = ("timestamp", *HEADERS, "value")
PATTERN = SEPARATOR.join([b"%d", *[b"%b"] * (len(PARTS) - 1)])

# What a message of the event would be: the timestamp, each header in order, and the value.
MESSAGE = r"""
convert_to(concat_ws(E'\x1f', trunc(extract(epoch FROM time) * 1000)::bigint, '1.0', event_id, type, $1::text,
    stream_id, to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), version, correlation_id,
    causation_id, actor, traceparent) || E'\x1f', 'UTF8') || value
"""
READ = f"""
SELECT convert_to(stream_id, 'UTF8'), {MESSAGE}, position FROM events
WHERE position > $2 AND position <= $3 AND time >= $4 ORDER BY position LIMIT {CHUNK}
"""
LOOK_UP = f"""
SELECT convert_to(stream_id, 'UTF8'), version, {MESSAGE}, position
FROM events JOIN unnest($2::text[], $3::int[]) AS wanted (stream_id, version) USING (stream_id, version)
"""
HOLES = """
SELECT stream_id, count(*), max(version) FROM events GROUP BY stream_id
HAVING max(version) <> count(*) OR min(version) <> 1 ORDER BY stream_id LIMIT 100
"""


class Stray(NamedTuple):
    """A message that was not the next of its stream in the store, as far as that was read."""

    record: ConsumerRecord
    message: bytes


class Side:
    """Of one service: its store, its topic, and what only one of them has so far."""

    def __init__(self, world: World, store: Store, kafka: AIOKafkaConsumer, findings: Findings) -> None:
        self.world = world
        self.store = store
        self.kafka = kafka
        self.findings = findings
        self.topic = store.service.decider.topic
        self.partitions = len(kafka.assignment())
        self.pending: dict[bytes, list[bytes]] = {}
        """By stream: what the store has, and the topic has not shown yet."""
        self.early: dict[bytes | None, list[Stray]] = {}
        """By stream: what the topic has shown, and the store has further on, if it has it at all."""
        self.ahead = 0
        """How many these are."""
        self.enough = STRAYS
        """So many are looked up: they may never have been stored."""
        self.at_odds: set[bytes | None] = set()
        """Streams with both: what comes next in the topic is not what comes next in the store."""
        self.position = 0
        self.stored_ms = -1
        self.duplicates = 0
        self.outgoing = 0
        """Events that have not left the outbox."""

    async def stored(self, last: int) -> AsyncIterator[Sequence[asyncpg.Record]]:
        position, since = 0, self.world.since or EPOCH
        while rows := await self.store.pool.fetch(READ, self.store.service.source, position, last, since):
            position = rows[-1][2]
            yield rows

    def take_stored(self, rows: Sequence[asyncpg.Record]) -> None:
        pending, early = self.pending, self.early
        for stream, message, _ in rows:
            shown = early.get(stream)
            if shown and shown[0].message == message and stream not in pending:
                self._forget_first(stream, shown)
                continue
            if shown:
                self.at_odds.add(stream)
            if stream in pending:
                pending[stream].append(message)
            else:
                pending[stream] = [message]
        self.position = rows[-1][2]
        self.stored_ms = int(rows[-1][1].partition(SEPARATOR)[0])
        self.findings.looked_at += len(rows)
        self.world.tell(len(rows))

    def _forget_first(self, stream: bytes, shown: list[Stray]) -> None:
        self.ahead -= 1
        if len(shown) == 1:
            del self.early[stream]
        else:
            del shown[0]

    def take(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        pending, early, count = self.pending, self.early, self.partitions
        for record in records:
            message, key = message_of(record), record.key
            waiting = pending.get(key)
            if waiting and waiting[0] == message and key not in early:
                if len(waiting) == 1:
                    del pending[key]
                else:
                    del waiting[0]
            else:
                self._keep(Stray(record, message))
                if waiting:
                    self.at_odds.add(key)
            if key is not None and crc32(key) % count != partition:
                self._add(record, f"It is in partition {partition}; its key belongs into {crc32(key) % count}.")

    def _keep(self, stray: Stray) -> None:
        self.ahead += 1
        self.early.setdefault(stray.record.key, []).append(stray)

    async def settle_odds(self) -> None:
        """Now and then: neither side is kept for long where they differ."""
        if self.ahead > self.enough:
            await self.settle(list(self.early))
            self.enough = 2 * self.ahead + STRAYS
        elif self.at_odds:
            await self.settle(self.at_odds)

    async def settle(self, streams: Iterable[bytes | None]) -> None:
        """Of each message: twice in the topic, out of order, other than stored, never stored, or still to come."""
        strays = [stray for stream in streams for stray in self.early.pop(stream, ())]
        self.ahead -= len(strays)
        self.at_odds.clear()
        known = await self._look_up(strays)
        for stray in strays:
            place = _place(stray.record)
            self._judge(stray, known.get(place) if place else None)

    async def _look_up(self, strays: Sequence[Stray]) -> dict[tuple[bytes, int], asyncpg.Record]:
        places = [place for stray in strays if (place := _place(stray.record))]
        streams, versions = [stream.decode(errors="replace") for stream, _ in places], [v for _, v in places]
        rows = await self.store.pool.fetch(LOOK_UP, self.store.service.source, streams, versions) if places else []
        return {(row[0], row[1]): row for row in rows}

    def _judge(self, stray: Stray, stored: asyncpg.Record | None) -> None:
        record, message = stray
        waiting = self.pending.get(record.key, [])
        if record.key in self.early or (stored and stored[3] > self.position):
            self._keep(stray)  # the store has it further on, or one that was shown before it
        elif message in waiting:
            if waiting[0] != message:
                self._add(record, f"It comes before version {_version(waiting[0])} of its stream.")
            _drop(self.pending, record.key, message)
        elif stored is None:
            self._add(record, "It is in the topic, and was never stored.")
        elif stored[2] != message or record.key != stored[0]:
            self._add(record, f"It is not what is stored: {_differing(stored[0], stored[2], record)}.")
            if stored[2] in self.pending.get(stored[0], ()):
                _drop(self.pending, stored[0], stored[2])
        else:
            self.duplicates += 1  # a relay died: the same bytes twice are no harm

    def _add(self, record: ConsumerRecord, what: str) -> None:
        stream, version = _place(record) or ((record.key or b""), 0)
        name = stream.decode(errors="replace")
        place = f"{record.topic}/{record.partition}/{record.offset}"
        look = f"till history {name}" if version else f"till replay {record.topic} --where 'offset == {record.offset}'"
        self.findings.add(Violation(what, f"{name}@{version}" if version else name, place, look))

    async def settle_pending(self, reached: Mapping[TopicPartition, int], patience: float) -> None:
        """What is stored and not in the topic is still in the outbox, or lost."""
        await self.settle(list(self.early))
        pending, self.pending = self.pending, {}
        give_up = time.monotonic() + patience
        while pending:
            # In this order: what left the outbox before we looked is in the topic before its end.
            outgoing = await self._outgoing(pending)
            goal = await ends(self.kafka)
            async for _, records in between(self.kafka, reached, goal):
                for record in records:
                    if (message := message_of(record)) in pending.get(record.key, ()):
                        _drop(pending, record.key, message)
            reached = goal
            for stream, messages in list(pending.items()):
                for message in messages[:]:
                    if (stream, message.split(SEPARATOR, 12)[12]) not in outgoing:
                        self._missing(stream, message)
                        _drop(pending, stream, message)
            if pending and time.monotonic() > give_up:
                self.outgoing += sum(map(len, pending.values()))
                return
            await asyncio.sleep(LOOK_SECONDS if pending else 0)

    async def _outgoing(self, pending: dict[bytes, list[bytes]]) -> set[tuple[bytes, bytes]]:
        keys = [stream.decode() for stream in pending]
        rows = await self.store.pool.fetch(
            "SELECT convert_to(key, 'UTF8'), value FROM outbox WHERE topic = $1 AND key = ANY($2::text[])",
            self.topic,
            keys,
        )
        return {(row[0], row[1]) for row in rows}

    def _missing(self, stream: bytes, message: bytes) -> None:
        version = _version(message)
        name = stream.decode()
        what = f"It is stored, and not in {self.topic}."
        self.findings.add(Violation(what, f"{name}@{version}", f"version {version}", f"till history {name}"))


def message_of(record: ConsumerRecord) -> bytes:
    """Empty where its headers are not those of an event. Written out, it takes half of what a loop takes."""
    value = record.value
    try:
        (na, a), (nb, b), (nc, c), (nd, d), (ne, e), (nf, f), (ng, g), (nh, h), (ni, i), (nj, j), (nk, k) = (
            record.headers
        )
    except ValueError:
        return b""
    if (na, nb, nc, nd, ne, nf, ng, nh, ni, nj, nk) != HEADERS or value is None:
        return b""
    return PATTERN % (record.timestamp, a, b, c, d, e, f, g, h, i, j, k, value)


def _place(record: ConsumerRecord) -> tuple[bytes, int] | None:
    headers = dict(record.headers)
    try:
        return headers["ce_subject"], int(headers["ce_streamversion"])
    except (KeyError, ValueError):
        return None


def _version(message: bytes) -> int:
    return int(message.split(SEPARATOR, 8)[7])


def _differing(stream: bytes, stored: bytes, record: ConsumerRecord) -> str:
    ours = stored.split(SEPARATOR, len(PARTS) - 1)
    headers = dict(record.headers)
    theirs = [b"%d" % record.timestamp, *(headers.get(name, b"") for name in HEADERS), record.value or b""]
    parts = [name for name, a, b in zip(PARTS, ours, theirs, strict=True) if a != b]
    if record.key != stream:
        parts.append("key")
    if tuple(name for name, _ in record.headers) != HEADERS:
        parts.append("names or order of headers")
    return ", ".join(parts)


def _drop(pending: dict[bytes, list[bytes]], stream: bytes, message: bytes) -> None:
    pending[stream].remove(message)
    if not pending[stream]:
        del pending[stream]


async def check(world: World, service: str) -> list[Findings]:
    store = world.stores[service]
    topic = store.service.decider.topic
    findings = Findings(f"{NAME}: {topic}", ABOUT)
    async with open_reader(world.settings, topic) as kafka:
        # The topic's end comes first: all that is before it is stored by the time we ask how far the store goes.
        stops = await ends(kafka)
        starts = await at_moment(kafka, world.since) if world.since else await begins(kafka)
        last = await store.pool.fetchval("SELECT coalesce(max(position), 0) FROM events")
        side = Side(world, store, kafka, findings)
        await _read_in_step(side, starts, stops, last)
        await side.settle_pending(stops, world.patience)
    for stream, count, highest in await store.pool.fetch(HOLES, timeout=600):
        what = f"Versions are missing in the store: it has {count} events, the last is version {highest}."
        findings.add(Violation(what, stream, f"version {highest}", f"till history {stream}"))
    if side.duplicates:
        findings.notes.append(f"{side.duplicates} messages of {topic} came twice, byte for byte the same.")
    if side.outgoing:
        findings.notes.append(f"{side.outgoing} events of {topic} are in the outbox still.")
    return [findings]


async def _read_in_step(
    side: Side, starts: dict[TopicPartition, int], stops: dict[TopicPartition, int], last: int
) -> None:
    """Whichever is behind in time is read on: neither gets far ahead of the other."""
    kafka, since = side.kafka, millis(side.world.since) if side.world.since else -1
    left = {partition: -1 for partition, start in starts.items() if start < stops[partition]}
    for partition in starts:
        kafka.seek(partition, starts[partition])
    chunks, has_more = side.stored(last), True
    while has_more or left:
        behind = [partition for partition, ms in left.items() if ms < side.stored_ms or not has_more]
        if has_more and not behind:
            rows = await anext(chunks, None)
            has_more = rows is not None
            if rows is None:
                side.position = last
            else:
                side.take_stored(rows)
            # The rest of the store is in no message before the ends that we set out to read.
            if not left and len(side.pending) > CHUNK:
                await side.settle_pending(stops, patience=0)
            continue
        for partition, records in (await kafka.getmany(*behind, timeout_ms=500, max_records=CHUNK)).items():
            wanted = [it for it in records if it.offset < stops[partition] and it.timestamp >= since]
            side.take(partition.partition, wanted)
            left[partition] = max(left[partition], records[-1].timestamp)
        for partition in behind:
            if await kafka.position(partition) >= stops[partition]:
                del left[partition]
        await side.settle_odds()
