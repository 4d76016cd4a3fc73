"""The operator's tools read the stores with the same deciders as the services themselves, and start fast."""

import subprocess
import sys

import pytest

from infra.settings import Settings
from services.operations.history.pending import REACTING, REACTIONS
from services.operations.reading.stores import category_of, key_of
from services.shop.services import STREAMS, all_deciders, decider_of, shop_services
from shared.store.snapshots import fold_fingerprint

LIBRARIES = {
    "state": "history.fields",
    "history": "history.stream_history",
    "diff": "history.changes",
    "why": "history.pending",
}
"""The modules below `services.operations` that a command imports when it is called."""
SLOW_IMPORTS = {"aiokafka", "fastapi", "httpx", "pydantic", "pyspark", "sqlalchemy", "sqlmodel", "uvloop"}


def test_each_store_is_read_with_the_decider_of_its_service() -> None:
    services = shop_services(Settings())
    deciders = all_deciders()
    assert [service.name for service in services] == list(deciders)
    for service in services:
        ours, theirs = deciders[service.name], service.decider
        assert STREAMS[theirs.category].service == service.name
        assert (ours.category, ours.topic) == (theirs.category, theirs.topic)
        assert (ours.initial, ours.evolve, ours.decide) == (theirs.initial, theirs.evolve, theirs.decide)
        assert fold_fingerprint(ours) == fold_fingerprint(theirs), "it would ignore the service's milestones"


def test_a_stream_id_names_its_category_and_that_its_service() -> None:
    assert (category_of("stock:A:1"), key_of("stock:A:1")) == ("stock", "A:1")
    assert list(decider_of("stock")) == ["catalog"]
    assert list(decider_of("order")) == ["order"]


def test_till_why_knows_the_same_reactions_as_the_services() -> None:
    services = {service.decider.category: service for service in shop_services(Settings())}
    categories = {decider.topic: decider.category for decider in all_deciders().values()}
    reactions = {
        (categories[topic], listener)
        for listener, service in services.items()
        for reaction in service.reactions
        for topic in reaction.topics
    }
    assert reactions == {(source, listener) for source, listeners in REACTING.items() for listener in listeners}
    assert set(REACTIONS) == {listener for _, listener in reactions}


@pytest.mark.parametrize(("command", "library"), LIBRARIES.items())
def test_a_command_that_looks_back_imports_nothing_that_is_slow_to_import(command: str, library: str) -> None:
    """The whole command has 300 ms, and each of these packages would take a good part of them."""
    modules = imported_by(f"import infra.cli.commands.look_back.{command}, services.operations.{library}")
    assert {name.partition(".")[0] for name in modules} & SLOW_IMPORTS == set()


def test_till_state_imports_only_the_decider_of_its_stream() -> None:
    modules = imported_by(
        "import infra.cli.commands.look_back.state, services.operations.history.fields;"
        "from services.shop.services import decider_of; decider_of('stock')"
    )
    assert {name for name in modules if name.endswith(".decider")} == {"services.catalog.decider", "shared.decider"}


def imported_by(program: str) -> set[str]:
    script = f"{program}; import sys; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
