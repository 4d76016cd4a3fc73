"""Sends requests to the shop and notes each answer. A retry has the same Idempotency-Key."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import orjson

from infra.simulation.audit.ledger import Answered, Ledger
from shared.http.problems import TYPE

ATTEMPTS = 3
RETRIED_STATUSES = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}
LONGEST_WAIT_SECONDS = 2.0


class NoAnswer(Exception):
    """There was no answer, so it is not known whether the request had an effect."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Calls:
    """The requests of one caller."""

    def __init__(self, http: httpx.AsyncClient, ledger: Ledger, who: str, token: str = "") -> None:
        self._http = http
        self._ledger = ledger
        self._who = who
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def with_token(self, token: str) -> "Calls":
        return Calls(self._http, self._ledger, self._who, token)

    async def get(self, route: str, **names: str) -> Answer:
        return await self._call("GET", route, names, None, self._headers)

    async def write(self, method: str, route: str, body: Any = None, key: str = "", **names: str) -> Answer:
        return await self._call(method, route, names, body, self._headers | {"Idempotency-Key": key or str(uuid4())})

    async def _call(
        self, method: str, route: str, names: Mapping[str, str], body: Any, headers: Mapping[str, str]
    ) -> Answer:
        content = None if body is None else orjson.dumps(body)
        path = route.format_map(names)
        for attempt in range(1, ATTEMPTS + 1):
            answer = await self._once(method, route, path, content, headers)
            if answer and answer.status not in RETRIED_STATUSES:
                return answer
            if attempt < ATTEMPTS:
                await asyncio.sleep(_wait(answer))
        if answer:
            return answer
        raise NoAnswer(path)

    async def _once(
        self, method: str, route: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> Answer | None:
        began = time.perf_counter()
        status, problem, answer = 0, "", None
        try:
            response = await self._http.request(method, path, content=content, headers=headers)
            body = orjson.loads(response.content)
            status, answer = response.status_code, Answer(response.status_code, body, response.headers)
            problem = "" if answer.is_success else body["type"].removeprefix(TYPE)
        except httpx.TransportError as error:
            problem = type(error).__name__
        ms = (time.perf_counter() - began) * 1000
        call = f"{method} {route.partition('?')[0]}"
        self._ledger.note(Answered(self._who, call, path, status, round(ms, 3), problem))
        return answer


def _wait(answer: Answer | None) -> float:
    retry_after = answer.headers.get("Retry-After", "") if answer else ""
    return min(float(retry_after), LONGEST_WAIT_SECONDS) if retry_after.isdigit() else 0.2
