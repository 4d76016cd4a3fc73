"""The short way to the rolls leads to the same place as the services' own wiring, and is short."""

import subprocess
import sys

from infra.events import declared_services
from services.replay.rolls import CATEGORIES, decider_of
from services.replay.waiting import LISTENING, REACTIONS
from shared.settings import Settings
from shared.snapshots import fold_fingerprint

HEAVY = ("aiokafka", "fastapi", "httpx", "pydantic", "pyspark", "sqlalchemy", "sqlmodel", "uvloop")


def test_the_rolls_are_those_of_the_services() -> None:
    services = declared_services(Settings())
    assert {s.decider.category: (s.name, s.decider.topic) for s in services} == {
        category: tuple(kept) for category, kept in CATEGORIES.items()
    }
    for service in services:
        ours = decider_of(service.decider.category)
        assert (ours.initial, ours.evolve, ours.decide) == (
            service.decider.initial,
            service.decider.evolve,
            service.decider.decide,
        )
        assert fold_fingerprint(ours) == fold_fingerprint(service.decider), "it would ignore the service's milestones"


def test_who_listens_to_whom_is_as_the_services_have_it() -> None:
    services = {service.decider.category: service for service in declared_services(Settings())}
    topics = {kept.topic: category for category, kept in CATEGORIES.items()}
    heard = {
        (topics[topic], listener)
        for listener, service in services.items()
        for reaction in service.reactions
        for topic in reaction.topics
    }
    assert heard == {(told, listener) for told, listeners in LISTENING.items() for listener in listeners}
    assert set(REACTIONS) == {listener for _, listener in heard}


def test_a_state_is_asked_for_without_what_is_slow_to_import() -> None:
    """The whole command has 300 ms, and each of these would take a good part of them."""
    program = (
        "import sys, infra.cli.state, infra.cli.why, services.replay.rolls, services.replay.portrait;"
        "from services.replay.rolls import CATEGORIES, decider_of;"
        "[decider_of(category) for category in CATEGORIES];"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(imported.stdout.split()) & set(HEAVY)
