"""Chains upcasters: a retired event is converted step by step until it is an event that is still written."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from schemas.upcasters import Upcaster
from shared.errors import OperatorError

Upcast = Callable[[Any], Any]
Upcasters = Mapping[str, Upcaster]


def upcast_chain(upcasters: Upcasters, record: str) -> tuple[str, Upcast | None]:
    """Returns the current record that replaced `record`, and the function that converts its fields.

    For a record that is not retired these are the record itself and None.
    """
    passed: list[str] = []
    steps: list[Upcast] = []
    while upcaster := upcasters.get(record):
        if record in passed:
            raise OperatorError(
                f"The upcasters form a cycle: {' -> '.join([*passed, record])}.",
                "One of these events must not be retired: remove it from schemas/upcasters.py.",
            )
        passed.append(record)
        steps.append(upcaster.convert)
        record = upcaster.into
    return record, (lambda fields: reduce(lambda old, step: step(old), steps, fields)) if steps else None
