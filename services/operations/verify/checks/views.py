"""I5: a view equals the fold of its events, at any cut: each row is what its stream comes to at the row's version."""

from collections.abc import Collection, Sequence
from typing import Any

from services.replay.checks.findings import Findings, Violation, World
from services.replay.checks.suspects import settle
from services.replay.folding import Folded, folded, of_streams, source_of
from services.replay.targets import Target, targets

NAME, ABOUT = "view = fold", "every row is what its events make it, and there is no other"
SOME = 2_000


class Rows:
    """A view beside the streams it is made of."""

    def __init__(self, world: World, target: Target) -> None:
        self.world = world
        self.target = target
        self.view = target.view
        self.pool = world.stores[target.service.name].pool
        self.store, self.rows = source_of(target, world.stores)
        self.prefix = self.store.service.decider.category + ":"
        self.findings = Findings(f"{NAME}: {target.name}", ABOUT)
        self.suspects: list[str] = []
        """Streams whose row is not what they come to now. Some of them have only moved on since."""
        self.required: dict[str, int] = {}
        """Of a suspect, the version that its row has to reach."""

    async def shown(self, keys: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        rows = await self.pool.fetch(
            f"SELECT {', '.join(self.view.names)} FROM {self.view.table} WHERE {self.view.key} = ANY($1::text[])", keys
        )
        return {row[self.view.key]: tuple(row) for row in rows}

    async def take(self, batch: Folded) -> None:
        keys = [stream.removeprefix(self.prefix) for stream in batch.streams]
        made = {key: self.view.values(row) for key, row in batch.rows}
        shown = await self.shown([*keys, *(made.keys() - set(keys))])
        self.suspects += [self.prefix + key for key in made.keys() | shown.keys() if made.get(key) != shown.get(key)]
        self.findings.looked_at += batch.events

    async def finish(self) -> Findings:
        await settle(self.world, self.suspects, self.judge, self.findings)
        await self.strangers()
        return self.findings

    async def judge(self, streams: Collection[str], is_last: bool) -> list[str]:
        """Those that may yet come right. What differs at the version that it shows will not."""
        undecided: list[str] = []
        for start in range(0, len(streams), SOME):
            undecided += await self._judge(list(streams)[start : start + SOME], is_last)
        return undecided

    async def _judge(self, streams: Sequence[str], is_last: bool) -> list[str]:
        shown = await self.shown([stream.removeprefix(self.prefix) for stream in streams])
        self.required = await self._latest(streams) | self.required
        undecided: list[str] = []
        for stream in streams:
            row = shown.get(stream.removeprefix(self.prefix))
            version = row[self.view.names.index("version")] if row else 0
            made = await self._folded(stream, version if row else None)
            if row is not None and row != made:
                self._add(stream, version, self._difference(row, made))
            elif (row is None and made is not None) or (row is not None and version < self.required.get(stream, 0)):
                undecided.append(stream)
                if is_last:
                    lacks = f"Its row is behind: the stream is at {self.required[stream]}." if row else "It has no row."
                    self._add(stream, version, lacks)
        return [] if is_last else undecided

    async def _latest(self, streams: Sequence[str]) -> dict[str, int]:
        rows = await self.store.pool.fetch(
            "SELECT stream_id, max(version) FROM events WHERE stream_id = ANY($1::text[]) GROUP BY stream_id", streams
        )
        return dict(map(tuple, rows))

    async def _folded(self, stream: str, version: int | None) -> tuple[Any, ...] | None:
        """The row at that version; at the latest where there is no row to compare with."""
        store, rows = source_of(self.target, self.world.stores)
        found: tuple[Any, ...] | None = None
        async for [batch] in folded(store, [rows], of_streams(store.pool, [stream], version)):
            for key, row in batch.rows:
                if key == stream.removeprefix(self.prefix):
                    found = self.view.values(row)
        return found

    def _difference(self, row: tuple[Any, ...], made: tuple[Any, ...] | None) -> str:
        if made is None:
            return "It has a row, and no event that makes one."
        differing = [
            f"{name} is {was!r}, not {should!r}"
            for name, was, should in zip(self.view.names, row, made, strict=True)
            if was != should
        ]
        return f"Its row is not what its events make it: {'; '.join(differing)}."

    def _add(self, stream: str, version: int, what: str) -> None:
        position = f"{self.target.name} version {version}"
        self.findings.add(Violation(what, stream, position, f"till history {stream}"))

    async def strangers(self) -> None:
        """Rows of streams that do not exist."""
        events = f'"{self.store.service.name}".events'
        rows = await self.pool.fetch(
            f"SELECT {self.view.key} FROM {self.view.table} WHERE NOT EXISTS (SELECT FROM {events}"
            f" WHERE stream_id = $1 || {self.view.key}) ORDER BY 1 LIMIT 100",
            self.prefix,
            timeout=600,
        )
        for (key,) in rows:
            what = "It has a row, and no event at all."
            look = f"till rebuild {self.target.name}"
            self.findings.add(Violation(what, self.prefix + key, f"{self.target.name} {key}", look))


def views(world: World) -> list[Rows]:
    return [Rows(world, target) for target in targets(world.services)]
