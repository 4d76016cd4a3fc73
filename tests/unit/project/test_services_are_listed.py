"""A service that has a folder is known everywhere: to the shop's process, to operators, to topics, to `up --split`."""

from pathlib import Path

from infra.cli.render.streams import KINDS
from infra.local.servers.services import services as processes
from infra.settings import Settings
from services.operations.history.shop_state import COUNT
from services.operations.whatif.decisions import ORIGINAL_COMMANDS
from services.shop.services import STREAMS, all_deciders, shop_services
from shared.messaging.topics import declared_topics

ROOT = Path(__file__).parents[3]
FOLDERS = {wiring.parent.name for wiring in (ROOT / "services").glob("*/wiring.py")}


def test_every_service_is_part_of_the_shop() -> None:
    assert {service.name for service in shop_services(Settings.load())} == FOLDERS
    assert all_deciders().keys() == FOLDERS


def test_every_service_has_topics_for_its_events_and_for_its_dead_letters() -> None:
    topics = {topic.name for topic in declared_topics()}
    wanted = {service.decider.topic for service in shop_services(Settings.load())} | {f"{name}.dlq" for name in FOLDERS}
    assert wanted - topics == set()


def test_every_service_has_a_worker_of_its_own_when_the_shop_is_split() -> None:
    split = {process.name for process in processes(Settings.load(split=True), ())}
    assert split >= FOLDERS


def test_every_service_and_its_streams_are_known_to_the_operators_commands() -> None:
    assert ORIGINAL_COMMANDS.keys() == FOLDERS, "till whatif decisions"
    assert set(KINDS) == STREAMS.keys(), "arguments of till history, state, diff and why"
    assert COUNT.keys() == STREAMS.keys(), "till at"
