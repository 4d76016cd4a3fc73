"""Recognises card numbers, which nobody may send: the payment provider issues tokens to use instead."""

import re
from collections.abc import Iterator
from typing import Any

from shared.http.problems import Problem

# One in some ten thousand of our own ids has no letters and would pass for a card number.
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
SHORTEST, LONGEST = 13, 19
NUMBER = re.compile(r"\d+(?:[ -]\d+)*")


def refuse_card_numbers(data: Any) -> None:
    """Raises a problem, which does not repeat the number, if the JSON value has a card number in it."""
    if has_card_number(data):
        raise Problem(422, "card-number", "This looks like a card number. Send the token it was exchanged for.")


def has_card_number(data: Any) -> bool:
    """Tells whether any text or number in the JSON value could be a card number, however its digits are grouped."""
    return any(_is_card_number(digits) for text in _texts(data) for digits in _numbers(UUID.sub("", text)))


def _texts(data: Any) -> Iterator[str]:
    waiting = [data]
    while waiting:
        match waiting.pop():
            case dict() as fields:
                waiting += [*fields.keys(), *fields.values()]
            case list() as items:
                waiting += items
            case str() | int() | float() as value:
                yield str(value)


def _numbers(text: str) -> Iterator[str]:
    """Yields each run of digits, alone and joined with the runs after it, up to the length of a card number."""
    for found in NUMBER.finditer(text):
        groups = re.split("[ -]", found.group())
        for start in range(len(groups)):
            digits = ""
            for group in groups[start : start + LONGEST]:
                digits += group
                yield digits
                if len(digits) >= LONGEST:
                    break


def _is_card_number(digits: str) -> bool:
    return SHORTEST <= len(digits) <= LONGEST and _luhn(digits) % 10 == 0


def _luhn(digits: str) -> int:
    plain, doubled = digits[-1::-2], digits[-2::-2]
    return sum(map(int, plain)) + sum(sum(divmod(2 * int(digit), 10)) for digit in doubled)
