"""Retired events are read as what replaced them: upcasters, one after another, until a living event is reached."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from schemas.upcasters import Upcaster
from shared.errors import OperatorError

Upcast = Callable[[Any], Any]
Upcasters = Mapping[str, Upcaster]


def chain(upcasters: Upcasters, record: str) -> tuple[str, Upcast | None]:
    """As which record `record` is read today, and what makes its fields so; None where nothing has to be done."""
    passed: list[str] = []
    steps: list[Upcast] = []
    while upcaster := upcasters.get(record):
        if record in passed:
            raise OperatorError(
                f"The upcasters go in a circle: {' -> '.join([*passed, record])}.",
                "One of them has to be a living event: take it out of schemas/upcasters.py.",
            )
        passed.append(record)
        steps.append(upcaster.convert)
        record = upcaster.into
    return record, (lambda fields: reduce(lambda old, step: step(old), steps, fields)) if steps else None
