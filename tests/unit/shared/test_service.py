"""The declaration of a service refuses what cannot work."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import APIRouter

from shared.decider import Deadlines, Decider
from shared.scheduling.errands import Errands
from shared.service import Service


def evolve(state: int, _event: int) -> int:
    return state


async def call(_operation: object) -> None:
    pass


RULES: Any = SimpleNamespace(initial=0, decide=lambda _command, _state: [], evolve=evolve)
DEADLINES: Deadlines[Any, Any, Any] = Deadlines(lambda _: None, lambda _: None, lambda _: None)
ERRANDS: Errands[Any, Any, Any] = Errands(wanted=lambda _: None, open=lambda: nullcontext(call))


def test_a_service_with_both_deadlines_and_errands_is_refused() -> None:
    with pytest.raises(ValueError, match="deadlines or errands"):
        Service("s", Decider.of(RULES, "s", "s.events", DEADLINES), lambda _: APIRouter(), errands=ERRANDS)
