"""I3: store and topic are the same, byte for byte, with keys, headers and partitions; each stream in order.

Both are read once, side by side and in step by time, so that only what one has and the other has not (yet) is in
memory. Bytes are compared as they are: nothing is decoded, and the store says of each event what Kafka should have.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import asyncpg

from services.replay.checks.expected import MESSAGE
from services.replay.checks.findings import Findings, Violation, World
from services.replay.checks.wire import WRITTEN, Message, Wire, opened
from services.replay.targets import Store
from services.replay.topics import at_moment, begins, ends
from shared.envelope import EPOCH, millis
from shared.refill import open_reader

NAME, ABOUT = "store = topic", "every event, byte for byte; versions 1..n in the order of offsets"
CHUNK = 10_000
AHEAD = 3
"""Chunks that the store is read ahead of the topic: what the topic shows is then found at once."""
STRAYS = 50_000
LOOK_SECONDS = 0.2

READ = f"""
SELECT convert_to(stream_id, 'UTF8'), position, {MESSAGE} FROM events
WHERE position > $2 AND position <= $3 AND time >= $4 ORDER BY position LIMIT {CHUNK}
"""
LOOK_UP = f"""
SELECT convert_to(stream_id, 'UTF8'), position, {MESSAGE}, version
FROM events JOIN unnest($2::text[], $3::int[]) AS wanted (stream_id, version) USING (stream_id, version)
"""
HOLES = """
SELECT stream_id, count(*), max(version) FROM events GROUP BY stream_id
HAVING max(version) <> count(*) OR min(version) <> 1 ORDER BY stream_id LIMIT 100
"""


Offsets = Mapping[int, int]
"""By partition."""
Goal = Callable[[], Awaitable[Offsets]]
"""Where the topic ends now."""
Sent = tuple[int, bytes]
"""Of a message: its time, and what is behind its key."""


class Stray(NamedTuple):
    """A message that was not the next of its stream in the store, as far as that was read."""

    partition: int
    offset: int
    key: bytes | None
    sent: Sent


class Stored(NamedTuple):
    """What the topic should have of an event."""

    stream: bytes
    position: int
    sent: Sent


class Side:
    """Of one service: its store, its topic, and what only one of them has so far."""

    def __init__(self, world: World, store: Store, wire: Wire, partitions: int, findings: Findings) -> None:
        self.world = world
        self.store = store
        self.wire = wire
        self.partitions = partitions
        self.findings = findings
        self.topic = store.service.decider.topic
        self.pending: dict[bytes, list[Sent]] = {}
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
        self.stored_ms = deque([-1] * AHEAD, AHEAD)
        """The times that the last chunks of the store have reached."""
        self.duplicates = 0
        self.outgoing = 0
        """Events that have not left the outbox."""

    async def stored(self, last: int) -> AsyncIterator[Sequence[asyncpg.Record]]:
        position, since = 0, self.world.since or EPOCH
        while rows := await self.store.pool.fetch(READ, self.store.service.source, position, last, since):
            position = rows[-1][1]
            yield rows

    def take_stored(self, rows: Sequence[asyncpg.Record]) -> None:
        pending, early, written = self.pending, self.early, WRITTEN
        ms = -1
        for stream, _, ms, value, headers in rows:
            sent = ms, written[len(value)] + value + headers
            shown = early.get(stream)
            if shown and shown[0].sent == sent and stream not in pending:
                self._forget_first(stream, shown)
                continue
            if shown:
                self.at_odds.add(stream)
            if stream in pending:
                pending[stream].append(sent)
            else:
                pending[stream] = [sent]
        self.position = rows[-1][1]
        self.stored_ms.append(ms)
        self.findings.looked_at += len(rows)
        self.world.tell(len(rows))

    def _forget_first(self, stream: bytes, shown: list[Stray]) -> None:
        self.ahead -= 1
        if len(shown) == 1:
            del self.early[stream]
        else:
            del shown[0]

    def take(self, partition: int, messages: Iterable[Message]) -> None:
        pending, early, count = self.pending, self.early, self.partitions
        for offset, ms, key, rest in messages:
            waiting = pending.get(key) if key is not None else None
            if key is not None and waiting and waiting[0] == (ms, rest) and key not in early:
                if len(waiting) == 1:
                    del pending[key]
                else:
                    del waiting[0]
            else:
                self._keep(Stray(partition, offset, key, (ms, rest)))
                if waiting:
                    self.at_odds.add(key)
            if key is not None and crc32(key) % count != partition:
                misplaced = Stray(partition, offset, key, (ms, rest))
                self._add(misplaced, f"It is in partition {partition}; its key belongs into {crc32(key) % count}.")

    def _keep(self, stray: Stray) -> None:
        self.ahead += 1
        self.early.setdefault(stray.key, []).append(stray)

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
            place = _place(stray)
            self._judge(stray, known.get(place) if place else None)

    async def _look_up(self, strays: Sequence[Stray]) -> dict[tuple[bytes, int], Stored]:
        places = [place for stray in strays if (place := _place(stray))]
        streams, versions = [stream.decode(errors="replace") for stream, _ in places], [v for _, v in places]
        rows = await self.store.pool.fetch(LOOK_UP, self.store.service.source, streams, versions) if places else []
        return {
            (stream, version): Stored(stream, position, (ms, WRITTEN[len(value)] + value + headers))
            for stream, position, ms, value, headers, version in rows
        }

    def _judge(self, stray: Stray, stored: Stored | None) -> None:
        key, sent = stray.key, stray.sent
        waiting = self.pending.get(key, []) if key is not None else []
        if key in self.early or (stored and stored.position > self.position):
            self._keep(stray)  # the store has it further on, or one that was shown before it
        elif key is not None and sent in waiting:
            if waiting[0] != sent:
                self._add(stray, f"It comes before version {_version(waiting[0])} of its stream.")
            _drop(self.pending, key, sent)
        elif stored is None:
            self._add(stray, "It is in the topic, and was never stored.")
        elif stored.sent != sent or key != stored.stream:
            self._add(stray, f"It is not what is stored: {_differing(stored, stray)}.")
            if stored.sent in self.pending.get(stored.stream, ()):
                _drop(self.pending, stored.stream, stored.sent)
        else:
            self.duplicates += 1  # a relay died: the same bytes twice are no harm

    def _add(self, stray: Stray, what: str) -> None:
        stream, version = _place(stray) or ((stray.key or b""), 0)
        name = stream.decode(errors="replace")
        place = f"{self.topic}/{stray.partition}/{stray.offset}"
        look = f"till history {name}" if version else f"till replay {self.topic} --where 'offset == {stray.offset}'"
        self.findings.add(Violation(what, f"{name}@{version}" if version else name, place, look))

    async def settle_pending(self, reached: Mapping[int, int], goal: Goal, patience: float) -> None:
        """What is stored and not in the topic is still in the outbox, or lost."""
        await self.settle(list(self.early))
        pending, self.pending = self.pending, {}
        give_up = time.monotonic() + patience
        while pending:
            # In this order: what left the outbox before we looked is in the topic before its end.
            outgoing = await self._outgoing(pending)
            stops = await goal()
            async for messages in _between(self.wire, reached, stops):
                for _, ms, key, rest in messages:
                    if key is not None and (ms, rest) in pending.get(key, ()):
                        _drop(pending, key, (ms, rest))
            reached = stops
            for stream, waiting in list(pending.items()):
                for sent in waiting[:]:
                    if (stream, opened(sent[1])[0]) not in outgoing:
                        self._missing(stream, sent)
                        _drop(pending, stream, sent)
            if pending and time.monotonic() > give_up:
                self.outgoing += sum(map(len, pending.values()))
                return
            await asyncio.sleep(LOOK_SECONDS if pending else 0)

    async def _outgoing(self, pending: dict[bytes, list[Sent]]) -> set[tuple[bytes, bytes | None]]:
        keys = [stream.decode() for stream in pending]
        rows = await self.store.pool.fetch(
            "SELECT convert_to(key, 'UTF8'), value FROM outbox WHERE topic = $1 AND key = ANY($2::text[])",
            self.topic,
            keys,
        )
        return {(row[0], row[1]) for row in rows}

    def _missing(self, stream: bytes, sent: Sent) -> None:
        version = _version(sent)
        name = stream.decode()
        what = f"It is stored, and not in {self.topic}."
        self.findings.add(Violation(what, f"{name}@{version}", f"version {version}", f"till history {name}"))


def _place(stray: Stray) -> tuple[bytes, int] | None:
    headers = dict(opened(stray.sent[1])[1])
    try:
        stream, version = headers[b"ce_subject"], headers[b"ce_streamversion"]
        return (stream, int(version)) if stream is not None and version is not None else None
    except (KeyError, ValueError):
        return None


def _version(sent: Sent) -> int:
    return int(dict(opened(sent[1])[1])[b"ce_streamversion"] or 0)


def _differing(stored: Stored, stray: Stray) -> str:
    (value, ours), (other, theirs) = opened(stored.sent[1]), opened(stray.sent[1])
    found = dict(theirs)
    parts = [("timestamp", stored.sent[0] != stray.sent[0])]
    parts += [(name.decode(), content != found.get(name, b"")) for name, content in ours]
    parts += [("value", value != other), ("key", stray.key != stored.stream)]
    parts.append(("names or order of headers", [name for name, _ in ours] != [name for name, _ in theirs]))
    return ", ".join(name for name, differs in parts if differs)


def _drop(pending: dict[bytes, list[Sent]], stream: bytes, sent: Sent) -> None:
    pending[stream].remove(sent)
    if not pending[stream]:
        del pending[stream]


async def check(world: World, service: str) -> list[Findings]:
    store = world.stores[service]
    topic = store.service.decider.topic
    findings = Findings(f"{NAME}: {topic}", ABOUT)
    async with open_reader(world.settings, topic) as kafka, Wire.open(world.settings, topic) as wire:

        async def goal() -> Offsets:
            return {at.partition: offset for at, offset in (await ends(kafka)).items()}

        # The topic's end comes first: all that is before it is stored by the time we ask how far the store goes.
        stops = await goal()
        begun = await at_moment(kafka, world.since) if world.since else await begins(kafka)
        starts = {at.partition: offset for at, offset in begun.items()}
        last = await store.pool.fetchval("SELECT coalesce(max(position), 0) FROM events")
        side = Side(world, store, wire, len(stops), findings)
        await _read_in_step(side, starts, stops, last, goal)
        await side.settle_pending(stops, goal, world.patience)
    for stream, count, highest in await store.pool.fetch(HOLES, timeout=600):
        what = f"Versions are missing in the store: it has {count} events, the last is version {highest}."
        findings.add(Violation(what, stream, f"version {highest}", f"till history {stream}"))
    if side.duplicates:
        findings.notes.append(f"{side.duplicates} messages of {topic} came twice, byte for byte the same.")
    if side.outgoing:
        findings.notes.append(f"{side.outgoing} events of {topic} are in the outbox still.")
    return [findings]


async def _read_in_step(side: Side, starts: Offsets, stops: Offsets, last: int, goal: Goal) -> None:
    """Whichever is behind in time is read on: neither gets far ahead of the other."""
    since = millis(side.world.since) if side.world.since else -1
    reached = dict(starts)
    left = {partition: -1 for partition, start in starts.items() if start < stops[partition]}
    chunks, has_more = side.stored(last), True
    while has_more or left:
        behind = [partition for partition, ms in left.items() if ms < side.stored_ms[0] or not has_more]
        if has_more and not behind:
            rows = await anext(chunks, None)
            has_more = rows is not None
            if rows is None:
                side.position = last
            else:
                side.take_stored(rows)
            # The rest of the store is in no message before the ends that we set out to read.
            if not left and len(side.pending) > CHUNK:
                await side.settle_pending(stops, goal, patience=0)
            continue
        for partition, (messages, following) in (await side.wire.fetch({it: reached[it] for it in behind})).items():
            wanted = messages if following <= stops[partition] else [it for it in messages if it[0] < stops[partition]]
            side.take(partition, [it for it in wanted if it[1] >= since] if side.world.since else wanted)
            if wanted:
                left[partition] = max(left[partition], wanted[-1][1])
            reached[partition] = following
            if following >= stops[partition]:
                del left[partition]
        await side.settle_odds()


async def _between(wire: Wire, starts: Offsets, stops: Offsets) -> AsyncIterator[list[Message]]:
    left = {partition: start for partition, start in starts.items() if start < stops[partition]}
    while left:
        for partition, (messages, following) in (await wire.fetch(left)).items():
            yield [it for it in messages if it[0] < stops[partition]]
            left[partition] = following
        left = {partition: offset for partition, offset in left.items() if offset < stops[partition]}
