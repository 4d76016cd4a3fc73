"""The book for many at once: one thread writes it, and whoever waits shares the next commit."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from services.psp.book import Answer, Book
from services.psp.rules import Request
from shared.errors import Refused

Found = TypeVar("Found")


class Job(NamedTuple):
    key: str
    request: Request
    done: Future[Answer]


class Ledger:
    def __init__(self, file: Path) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._book = Book(file)
        self._waiting: deque[Job] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._book.close()

    async def answer(self, key: str, request: Request) -> Answer:
        """Told when it is on the disk."""
        job = Job(key, request, Future())
        self._waiting.append(job)
        self._thread.submit(self._commit)
        return await asyncio.wrap_future(job.done)

    async def read(self, look: Callable[[Book], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._thread, look, self._book)

    def _commit(self) -> None:
        """Everything that waits; the calls that were meant for the rest find nothing left."""
        jobs = [self._waiting.popleft() for _ in range(len(self._waiting))]
        jobs = [job for job in jobs if job.done.set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            with self._book.transaction():
                outcomes = [self._outcome(job) for job in jobs]
        except Exception as error:  # it belongs to those who wait
            outcomes = [error] * len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            if isinstance(outcome, Exception):
                job.done.set_exception(outcome)
            else:
                job.done.set_result(outcome)

    def _outcome(self, job: Job) -> Answer | Exception:
        try:
            return self._book.answer(job.key, job.request)
        except Refused as refused:  # before anything of it was written
            return refused
