"""The dead-letter queues of all services, for an operator: list, inspect, retry and drop letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from services.shop.services import shop_services
from services.shop.settings import ShopSettings
from shared.recovery.dead_letter_queue import read_letter, read_letters
from shared.recovery.dead_letters import Death, Letter, dead_letter_topic
from shared.recovery.rehearsal import Rehearsal, rehearse
from shared.recovery.retry import FailedAgain, NoConsumer, original_record, retry, running_background_work
from shared.recovery.settlements import How, Settlement, drop, find_settlement, read_settlements
from shared.schemas.codec import Undecodable
from shared.service import Runtime, Service, migrate_service, open_service
from shared.store.database import open_pool


class LetterId(NamedTuple):
    """Names a letter by its service, partition and offset. It is written `cart.dlq/0/17`."""

    service: str
    partition: int
    offset: int


@dataclass(frozen=True)
class LetterSummary:
    id: str
    death: Death
    type: str
    stream: str
    reason: str
    settlement: Settlement | None


@dataclass(frozen=True)
class LetterDetails:
    summary: LetterSummary
    letter: Letter
    payload: Any
    undecodable: str
    """Why the payload cannot be decoded; empty if it can."""
    rehearsal: Rehearsal | None
    """The effects that a retry would have; None for a settled letter."""


@dataclass(frozen=True)
class LetterResult:
    """The result of retrying or dropping one letter."""

    id: str
    earlier: Settlement | None = None
    """How it was settled before; None if it was not."""
    error: str = ""

    def succeeded(self, how: How) -> bool:
        """Tells whether the letter is settled that way now, even if it was before."""
        return not self.error and (self.earlier is None or self.earlier.how == how)


def services_by_name(settings: ShopSettings) -> dict[str, Service]:
    return {service.name: service for service in shop_services(settings)}


async def list_letters(settings: ShopSettings, names: Sequence[str], *, include_settled: bool) -> list[LetterSummary]:
    """Returns the dead letters of these services, oldest first."""
    found = [
        summary
        for name in names
        for summary in await _list_letters_of(settings, name)
        if include_settled or not summary.settlement
    ]
    return sorted(found, key=attrgetter("death.time"))


async def _list_letters_of(settings: ShopSettings, name: str) -> list[LetterSummary]:
    async with await open_pool(settings, name, size=2) as pool:
        settlements = await read_settlements(pool)
    return [_summarize(letter, settlements.get(letter.death)) async for letter in read_letters(settings, name)]


def _summarize(letter: Letter, settlement: Settlement | None) -> LetterSummary:
    event_type, stream = letter.header("ce_type"), letter.header("ce_subject")
    return LetterSummary(letter.id, letter.death, event_type, stream, letter.reason, settlement)


async def inspect_letter(settings: ShopSettings, letter_id: LetterId) -> LetterDetails:
    """Returns the letter with its decoded payload, and what a retry would do."""
    letter = await _read(settings, letter_id)
    async with open_service(services_by_name(settings)[letter_id.service], settings) as runtime:
        settlement = await find_settlement(runtime.pool, letter)
        payload, undecodable = await _decode_payload(runtime, letter)
        rehearsal = None
        if not settlement:
            async with running_background_work(runtime):
                rehearsal = await rehearse(runtime, letter)
    return LetterDetails(_summarize(letter, settlement), letter, payload, undecodable, rehearsal)


async def _decode_payload(runtime: Runtime, letter: Letter) -> tuple[Any, str]:
    try:
        record = await original_record(runtime.settings, letter)
        return await runtime.decoder.decode(record.value or b""), ""
    except (Undecodable, FailedAgain) as error:
        return None, str(error)


async def retry_letters(settings: ShopSettings, ids: Sequence[LetterId], by: str) -> list[LetterResult]:
    results = []
    for name, service in services_by_name(settings).items():
        letters = [await _read(settings, letter_id) for letter_id in ids if letter_id.service == name]
        if letters:
            async with open_service(service, settings) as runtime, running_background_work(runtime):
                results += [await _retry(runtime, letter, by) for letter in letters]
    return results


async def retry_all_letters(settings: ShopSettings, by: str) -> list[LetterResult]:
    """Retries every letter that is not settled, the oldest of each service first."""
    results = []
    for name, service in services_by_name(settings).items():
        if await list_letters(settings, [name], include_settled=False):
            async with open_service(service, settings) as runtime, running_background_work(runtime):
                settlements = await read_settlements(runtime.pool)
                unsettled = (it async for it in read_letters(settings, name) if it.death not in settlements)
                results += [await _retry(runtime, letter, by) async for letter in unsettled]
    return results


async def _retry(runtime: Runtime, letter: Letter, by: str) -> LetterResult:
    try:
        return LetterResult(letter.id, await retry(runtime, letter, by))
    except (FailedAgain, NoConsumer) as error:  # the other letters are retried all the same
        return LetterResult(letter.id, error=error.message)


async def drop_letters(settings: ShopSettings, ids: Sequence[LetterId], reason: str, by: str) -> list[LetterResult]:
    results = []
    for letter_id in ids:
        letter = await _read(settings, letter_id)
        await migrate_service(services_by_name(settings)[letter_id.service], settings)
        async with await open_pool(settings, letter_id.service, size=2) as pool:
            results.append(LetterResult(letter.id, await drop(pool, letter, reason, by)))
    return results


async def _read(settings: ShopSettings, letter_id: LetterId) -> Letter:
    return await read_letter(settings, dead_letter_topic(letter_id.service), letter_id.partition, letter_id.offset)
