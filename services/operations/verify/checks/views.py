"""Invariant I5: a view equals the fold of its events. Each row is what its stream makes it at the row's version."""

from collections.abc import Collection, Sequence
from typing import Any

from services.operations.reading.fold import FoldedBatch, fold_streams, read_streams
from services.operations.reading.row_builders import find_source
from services.operations.reading.views import Target, list_views
from services.operations.verify.findings import CheckContext, Findings, Violation
from services.operations.verify.suspects import settle_suspects

NAME, ABOUT = "view = fold", "every row is what its events make it, and there is no other"
STREAMS_AT_ONCE = 2_000


class ViewCheck:
    """Compares the rows of a view with the streams they are made of."""

    def __init__(self, context: CheckContext, target: Target) -> None:
        self.context = context
        self.target = target
        self.view = target.view
        self.pool = context.stores[target.service.name].pool
        self.store, self.builder = find_source(target, context.services, context.stores)
        self.prefix = self.store.decider.category + ":"
        self.findings = Findings(f"{NAME}: {target.name}", ABOUT)
        self.suspects: list[str] = []
        """Streams whose row differs from their fold. Some have only moved on since."""
        self.required: dict[str, int] = {}
        """The version that the row of a suspect has to reach."""

    async def take(self, batch: FoldedBatch) -> None:
        keys = [stream.removeprefix(self.prefix) for stream in batch.streams]
        expected = {key: self.view.values(row) for key, row in batch.rows}
        rows = await self._read_rows([*keys, *(expected.keys() - set(keys))])
        differing = (key for key in expected.keys() | rows.keys() if expected.get(key) != rows.get(key))
        self.suspects += [self.prefix + key for key in differing]
        self.findings.looked_at += batch.events

    async def finish(self) -> Findings:
        await settle_suspects(self.context, self.suspects, self.judge, self.findings)
        await self._find_rows_without_stream()
        return self.findings

    async def judge(self, streams: Collection[str], is_last: bool) -> list[str]:
        """Adds a violation for each row that is wrong at its own version; returns streams whose row may be late."""
        undecided: list[str] = []
        for start in range(0, len(streams), STREAMS_AT_ONCE):
            undecided += await self._judge(list(streams)[start : start + STREAMS_AT_ONCE], is_last)
        return undecided

    async def _judge(self, streams: Sequence[str], is_last: bool) -> list[str]:
        rows = await self._read_rows([stream.removeprefix(self.prefix) for stream in streams])
        self.required = await self._latest_versions(streams) | self.required
        undecided: list[str] = []
        for stream in streams:
            row = rows.get(stream.removeprefix(self.prefix))
            version = row[self.view.names.index("version")] if row else 0
            expected = await self._fold_row(stream, version if row else None)
            is_late = expected is not None if row is None else version < self.required.get(stream, 0)
            if row is not None and row != expected:
                self._add(stream, version, self._describe_difference(row, expected))
            elif is_late:
                undecided.append(stream)
                if is_last:
                    lacks = f"Its row is behind: the stream is at {self.required[stream]}." if row else "It has no row."
                    self._add(stream, version, lacks)
        return [] if is_last else undecided

    async def _read_rows(self, keys: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        rows = await self.pool.fetch(
            f"SELECT {', '.join(self.view.names)} FROM {self.view.table} WHERE {self.view.key} = ANY($1::text[])", keys
        )
        return {row[self.view.key]: tuple(row) for row in rows}

    async def _latest_versions(self, streams: Sequence[str]) -> dict[str, int]:
        rows = await self.store.pool.fetch(
            "SELECT stream_id, max(version) FROM events WHERE stream_id = ANY($1::text[]) GROUP BY stream_id", streams
        )
        return dict(map(tuple, rows))

    async def _fold_row(self, stream: str, version: int | None) -> tuple[Any, ...] | None:
        """Returns what the row should be at a version, or at the latest."""
        store, builder = find_source(self.target, self.context.services, self.context.stores)
        found: tuple[Any, ...] | None = None
        async for [batch] in fold_streams(store, [builder], read_streams(store.pool, [stream], version)):
            for key, row in batch.rows:
                if key == stream.removeprefix(self.prefix):
                    found = self.view.values(row)
        return found

    def _describe_difference(self, row: tuple[Any, ...], expected: tuple[Any, ...] | None) -> str:
        if expected is None:
            return "It has a row, and no event that makes one."
        differing = [
            f"{name} is {value!r}, not {should!r}"
            for name, value, should in zip(self.view.names, row, expected, strict=True)
            if value != should
        ]
        return f"Its row is not what its events make it: {'; '.join(differing)}."

    def _add(self, stream: str, version: int, what: str) -> None:
        position = f"{self.target.name} version {version}"
        self.findings.add(Violation(what, stream, position, f"till history {stream}"))

    async def _find_rows_without_stream(self) -> None:
        events = f'"{self.store.service}".events'
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


def view_checks(context: CheckContext) -> list[ViewCheck]:
    return [ViewCheck(context, target) for target in list_views(context.services)]
