"""The event catalogue agrees with the schemas and the services."""

from pathlib import Path

from infra.cli.reference.events_page import page
from infra.cli.reference.schema_changes import history
from infra.cli.reference.wiring import example_of, readers, written_by
from infra.settings import Settings
from services.shop.services import shop_services
from shared.schemas.contract.event_schemas import load_schemas

SCHEMAS = load_schemas()
ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden"


def test_the_event_catalogue_is_up_to_date() -> None:
    written = (ROOT / "docs" / "events.md").read_text()
    assert written == page(GOLDEN), "Run: make docs"


def test_every_current_event_of_a_service_has_a_writer() -> None:
    """Events of `fraud.alerts` are excepted: the lake writes them, and it is no service."""
    services = shop_services(Settings.load())
    orphans = [
        record
        for record in SCHEMAS.records
        if record not in SCHEMAS.upcasters
        and not any(written_by(service, SCHEMAS.newest(record)) for service in services)
    ]
    assert [record for record in orphans if not record.startswith("tillroll.fraud.")] == []


def test_no_service_writes_a_retired_event() -> None:
    services = shop_services(Settings.load())
    assert [r for r in SCHEMAS.upcasters if any(written_by(s, SCHEMAS.newest(r)) for s in services)] == []


def test_the_readers_of_an_event_include_reactions_to_it() -> None:
    checked_out = SCHEMAS.newest("tillroll.cart.CartCheckedOut")
    opened = SCHEMAS.newest("tillroll.cart.CartOpened")
    order = next(service for service in shop_services(Settings.load()) if service.name == "order")
    assert [reader.how for reader in readers(order, checked_out, example_of(checked_out, GOLDEN))] == ["`PlaceOrder`"]
    assert list(readers(order, opened, example_of(opened, GOLDEN))) == []


def test_the_changes_of_a_version_are_described_in_words() -> None:
    assert history(SCHEMAS.records["tillroll.cart.ItemRemoved"]) == [
        (1, "the first"),
        (2, "`quantity` added, default `0`"),
        (3, "`quantity` is now `pieces_removed`"),
    ]
