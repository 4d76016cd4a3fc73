"""Dead letters of all services, as an operator deals with them: found, looked into, retried, dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from infra.events import declared_services
from shared.codec import Undecodable
from shared.database import open_pool
from shared.deadletters import Death, Letter, letter_at, letters, topic_of
from shared.migrations import migrate
from shared.rehearsal import Rehearsal, rehearse
from shared.service import Runtime, Service, open_service
from shared.settings import Settings
from shared.settling import (
    FailedAgain,
    How,
    NoConsumer,
    Settled,
    beside,
    drop,
    original,
    retry,
    settled,
    settlement,
)


class Place(NamedTuple):
    """Where a letter is: `cart.dlq/0/17`."""

    service: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Found:
    id: str
    death: Death
    type: str
    stream: str
    reason: str
    settled: Settled | None


@dataclass(frozen=True)
class Shown:
    found: Found
    letter: Letter
    payload: Any
    undecodable: str
    """Why there is no payload, if there is none."""
    retry: Rehearsal | None
    """None where it is settled: there is nothing to retry."""


@dataclass(frozen=True)
class Done:
    id: str
    before: Settled | None = None
    """How it had been settled already."""
    error: str = ""

    def is_as_asked(self, how: How) -> bool:
        return not self.error and (self.before is None or self.before.how == how)


def services(settings: Settings) -> dict[str, Service]:
    return {service.name: service for service in declared_services(settings)}


async def find(settings: Settings, names: Sequence[str], everything: bool) -> list[Found]:
    """By when they died; without `everything`, those that wait to be settled."""
    found = [one for name in names for one in await _find(settings, name) if everything or not one.settled]
    return sorted(found, key=attrgetter("death.time"))


async def _find(settings: Settings, name: str) -> list[Found]:
    async with await open_pool(settings, name, size=2) as pool:
        known = await settled(pool)
    return [_found(letter, known.get(letter.death)) async for letter in letters(settings, name)]


def _found(letter: Letter, how: Settled | None) -> Found:
    return Found(letter.id, letter.death, letter.header("ce_type"), letter.header("ce_subject"), letter.reason, how)


async def look_into(settings: Settings, place: Place) -> Shown:
    letter = await _letter(settings, place)
    async with open_service(services(settings)[place.service], settings) as runtime:
        how = await settlement(runtime.pool, letter)
        payload, undecodable = await _payload(runtime, letter)
        plan = None if how else await _plan(runtime, letter)
    return Shown(_found(letter, how), letter, payload, undecodable, plan)


async def _plan(runtime: Runtime, letter: Letter) -> Rehearsal:
    async with beside(runtime):
        return await rehearse(runtime, letter)


async def _payload(runtime: Runtime, letter: Letter) -> tuple[Any, str]:
    try:
        record = await original(runtime.settings, letter)
        return await runtime.memory.decode(record.value or b""), ""
    except (Undecodable, FailedAgain) as error:
        return None, str(error)


async def retry_these(settings: Settings, places: Sequence[Place], by: str) -> list[Done]:
    done = []
    for name, service in services(settings).items():
        wanted = [await _letter(settings, place) for place in places if place.service == name]
        if wanted:
            async with open_service(service, settings) as runtime, beside(runtime):
                done += [await _retried(runtime, letter, by) for letter in wanted]
    return done


async def retry_all(settings: Settings, by: str) -> list[Done]:
    done = []
    for name, service in services(settings).items():
        if await find(settings, [name], everything=False):
            async with open_service(service, settings) as runtime, beside(runtime):
                known = await settled(runtime.pool)
                waiting = (letter async for letter in letters(settings, name) if letter.death not in known)
                done += [await _retried(runtime, letter, by) async for letter in waiting]
    return done


async def _retried(runtime: Runtime, letter: Letter, by: str) -> Done:
    try:
        return Done(letter.id, await retry(runtime, letter, by))
    except (FailedAgain, NoConsumer) as error:  # the others need not wait for it
        return Done(letter.id, error=error.message)


async def drop_these(settings: Settings, places: Sequence[Place], reason: str, by: str) -> list[Done]:
    done = []
    for place in places:
        letter = await _letter(settings, place)
        await migrate(settings.database_url.get_secret_value(), place.service)
        async with await open_pool(settings, place.service, size=2) as pool:
            done.append(Done(letter.id, await drop(pool, letter, reason, by)))
    return done


async def _letter(settings: Settings, place: Place) -> Letter:
    return await letter_at(settings, topic_of(place.service), place.partition, place.offset)
