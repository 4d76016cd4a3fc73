"""Matches the messages of a topic with the events of its store, and says what is wrong where they do not match.

Both sides are fed in as they are read. Only what one side has shown and the other not (yet) is in memory.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from services.operations.reading.stores import Store
from services.operations.verify.findings import CheckContext, Findings, Violation
from services.operations.verify.log_comparison.messages import Body, LogReader, Message, Offsets, StoredMessage

STRAYS_KEPT = 50_000
"""Strays beyond this number are looked up in the store: they may never have been stored."""
POLL_SECONDS = 0.2

TopicEnd = Callable[[], Awaitable[Offsets]]
"""Asks where the topic ends now."""


class Stray(NamedTuple):
    """A message that was not the next one of its stream in the store, as far as the store has been read."""

    partition: int
    offset: int
    key: bytes | None
    body: Body


class LogComparison:
    """The comparison of one service's store with its topic."""

    def __init__(
        self, context: CheckContext, store: Store, reader: LogReader, partitions: int, findings: Findings
    ) -> None:
        self.context = context
        self.store = store
        self.reader = reader
        self.partitions = partitions
        self.findings = findings
        self.topic = store.decider.topic
        self.unsent: dict[bytes, list[Body]] = {}
        """Events by stream that the store has shown, and the topic has not yet."""
        self.strays: dict[bytes | None, list[Stray]] = {}
        """Messages by stream that the topic has shown, and the store has further on, if it has them at all."""
        self.stray_count = 0
        self.strays_kept = STRAYS_KEPT
        self.mismatched: set[bytes | None] = set()
        """Streams with both: their next message in the topic is not their next event in the store."""
        self.position = 0
        """The position up to which the store has been read."""
        self.duplicates = 0
        self.in_outbox = 0

    def take_stored(self, stored: Sequence[StoredMessage]) -> None:
        """Takes the next events of the store."""
        unsent, strays = self.unsent, self.strays
        for stream, _, body in stored:
            shown = strays.get(stream)
            if shown and shown[0].body == body and stream not in unsent:
                self._drop_first_stray(stream, shown)
                continue
            if shown:
                self.mismatched.add(stream)
            if stream in unsent:
                unsent[stream].append(body)
            else:
                unsent[stream] = [body]
        self.position = stored[-1][1]
        self.findings.looked_at += len(stored)
        self.context.report(len(stored))

    def _drop_first_stray(self, stream: bytes, shown: list[Stray]) -> None:
        self.stray_count -= 1
        if len(shown) == 1:
            del self.strays[stream]
        else:
            del shown[0]

    def take_messages(self, partition: int, messages: Iterable[Message]) -> None:
        """Takes the next messages of a partition."""
        unsent, strays, count = self.unsent, self.strays, self.partitions
        for offset, key, body in messages:
            waiting = unsent.get(key) if key is not None else None
            if key is not None and waiting and waiting[0] == body and key not in strays:
                if len(waiting) == 1:
                    del unsent[key]
                else:
                    del waiting[0]
            else:
                self._keep(Stray(partition, offset, key, body))
                if waiting:
                    self.mismatched.add(key)
            if key is not None and crc32(key) % count != partition:
                misplaced = Stray(partition, offset, key, body)
                self._add(misplaced, f"It is in partition {partition}; its key belongs in {crc32(key) % count}.")

    def _keep(self, stray: Stray) -> None:
        self.stray_count += 1
        self.strays.setdefault(stray.key, []).append(stray)

    async def judge_mismatches(self) -> None:
        """Judges strays now and then, so that neither side is kept for long where the two differ."""
        if self.stray_count > self.strays_kept:
            await self.judge_strays(list(self.strays))
            self.strays_kept = 2 * self.stray_count + STRAYS_KEPT
        elif self.mismatched:
            await self.judge_strays(self.mismatched)

    async def judge_strays(self, streams: Iterable[bytes | None]) -> None:
        """Decides what each stray is: a duplicate, out of order, other than stored, never stored, or still to come."""
        strays = [stray for stream in streams for stray in self.strays.pop(stream, ())]
        self.stray_count -= len(strays)
        self.mismatched.clear()
        places = [place for stray in strays if (place := self._place(stray))]
        names = [stream.decode(errors="replace") for stream, _ in places]
        stored = await self.reader.look_up(names, [version for _, version in places]) if places else {}
        for stray in strays:
            place = self._place(stray)
            self._judge(stray, place, stored.get(place) if place else None)

    def _judge(self, stray: Stray, place: tuple[bytes, int] | None, stored: tuple[int, Body] | None) -> None:
        key, body = stray.key, stray.body
        waiting = self.unsent.get(key, []) if key is not None else []
        if key in self.strays or (stored and stored[0] > self.position):
            self._keep(stray)  # the store has it further on, or one that was shown before it
        elif key is not None and body in waiting:
            if waiting[0] != body:
                self._add(stray, f"It comes before version {self._version(waiting[0])} of its stream.")
            _drop(self.unsent, key, body)
        elif stored is None or place is None:
            self._add(stray, "It is in the topic, and was never stored.")
        elif (place[0], stored[1]) != (key, body):
            self._add(stray, f"It differs from what is stored: {self._differing_parts(place[0], stored[1], stray)}.")
            if stored[1] in self.unsent.get(place[0], ()):
                _drop(self.unsent, place[0], stored[1])
        else:
            self.duplicates += 1  # at-least-once delivery: a relay may die between sending and deleting from the outbox

    async def judge_unsent(self, reached: Offsets, topic_end: TopicEnd, patience: float) -> None:
        """Decides whether what is stored and not in the topic is still in the outbox, or lost."""
        await self.judge_strays(list(self.strays))
        unsent, self.unsent = self.unsent, {}
        give_up = time.monotonic() + patience
        while unsent:
            # In this order: what has left the outbox by now is in the topic before its end.
            outbox = await self._read_outbox(unsent)
            stops = await topic_end()
            async for messages in _read_between(self.reader, reached, stops):
                for _, key, body in messages:
                    if key is not None and body in unsent.get(key, ()):
                        _drop(unsent, key, body)
            reached = stops
            for stream, waiting in list(unsent.items()):
                for body in waiting[:]:
                    if (stream, self.reader.contents(body).value) not in outbox:
                        self._add_missing(stream, body)
                        _drop(unsent, stream, body)
            if unsent and time.monotonic() > give_up:
                self.in_outbox += sum(map(len, unsent.values()))
                return
            await asyncio.sleep(POLL_SECONDS if unsent else 0)

    async def _read_outbox(self, unsent: Mapping[bytes, list[Body]]) -> set[tuple[bytes, bytes | None]]:
        keys = [stream.decode() for stream in unsent]
        rows = await self.store.pool.fetch(
            "SELECT convert_to(key, 'UTF8'), value FROM outbox WHERE topic = $1 AND key = ANY($2::text[])",
            self.topic,
            keys,
        )
        return {(row[0], row[1]) for row in rows}

    def _add(self, stray: Stray, what: str) -> None:
        stream, version = self._place(stray) or ((stray.key or b""), 0)
        name = stream.decode(errors="replace")
        place = f"{self.topic}/{stray.partition}/{stray.offset}"
        look = f"till history {name}" if version else f"till replay {self.topic} --where 'offset == {stray.offset}'"
        self.findings.add(Violation(what, f"{name}@{version}" if version else name, place, look))

    def _add_missing(self, stream: bytes, body: Body) -> None:
        name, version = stream.decode(), self._version(body)
        what = f"It is stored, and not in {self.topic}."
        self.findings.add(Violation(what, f"{name}@{version}", f"version {version}", f"till history {name}"))

    def _place(self, stray: Stray) -> tuple[bytes, int] | None:
        """Returns stream and version as the headers name them; None if they do not."""
        headers = dict(self.reader.contents(stray.body).headers)
        try:
            stream, version = headers[b"ce_subject"], headers[b"ce_streamversion"]
            return (stream, int(version)) if stream is not None and version is not None else None
        except (KeyError, ValueError):
            return None

    def _version(self, body: Body) -> int:
        return int(dict(self.reader.contents(body).headers)[b"ce_streamversion"] or 0)

    def _differing_parts(self, stream: bytes, stored: Body, stray: Stray) -> str:
        (value, headers), (other_value, other_headers) = (self.reader.contents(it) for it in (stored, stray.body))
        other = dict(other_headers)
        parts = [("timestamp", stored[0] != stray.body[0])]
        parts += [(name.decode(), content != other.get(name, b"")) for name, content in headers]
        parts += [("value", value != other_value), ("key", stray.key != stream)]
        names, other_names = ([name for name, _ in it] for it in (headers, other_headers))
        parts.append(("names or order of headers", names != other_names))
        return ", ".join(name for name, differs in parts if differs)


def _drop(bodies: dict[bytes, list[Body]], stream: bytes, body: Body) -> None:
    bodies[stream].remove(body)
    if not bodies[stream]:
        del bodies[stream]


async def _read_between(reader: LogReader, starts: Offsets, stops: Offsets) -> AsyncIterator[list[Message]]:
    left = {partition: start for partition, start in starts.items() if start < stops[partition]}
    while left:
        for partition, (messages, following) in (await reader.fetch(left)).items():
            yield [it for it in messages if it[0] < stops[partition]]
            left[partition] = following
        left = {partition: offset for partition, offset in left.items() if offset < stops[partition]}
