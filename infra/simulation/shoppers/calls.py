"""Requests to the shop, each noted with its answer. What can be tried again is, with the same Idempotency-Key."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import orjson

from infra.shoppers.ledger import Answered, Ledger
from shared.http.problems import TYPE

TRIES = 3
TRY_AGAIN = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}
LONGEST_WAIT = 2.0


class NoAnswer(Exception):
    """Whether it was done is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Calls:
    """Of one caller."""

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
        for attempt in range(1, TRIES + 1):
            answer = await self._once(method, route, path, content, headers)
            if answer and answer.status not in TRY_AGAIN:
                return answer
            if attempt < TRIES:
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
    asked = answer.headers.get("Retry-After", "") if answer else ""
    return min(float(asked), LONGEST_WAIT) if asked.isdigit() else 0.2
