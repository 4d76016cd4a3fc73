"""The catalogue of events says what the schemas and the services say."""

from pathlib import Path

from infra.cli.events_page import page
from infra.events import declared_services, example_of, readers, written_by
from infra.schema_changes import history
from shared.schemas import load_schemas
from shared.settings import Settings

SCHEMAS = load_schemas()


def test_the_page_is_up_to_date() -> None:
    written = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
    assert written == page(), "Run: make docs"


def test_every_living_event_of_a_service_has_a_writer() -> None:
    """`fraud.alerts` is the lake's; the lake is no service."""
    services = declared_services(Settings.load())
    orphans = [
        record
        for record in SCHEMAS.records
        if record not in SCHEMAS.upcasters
        and not any(written_by(service, SCHEMAS.newest(record)) for service in services)
    ]
    assert [record for record in orphans if not record.startswith("tillroll.fraud.")] == []


def test_nobody_writes_a_retired_event() -> None:
    services = declared_services(Settings.load())
    assert [r for r in SCHEMAS.upcasters if any(written_by(s, SCHEMAS.newest(r)) for s in services)] == []


def test_a_reaction_is_found_by_asking_it() -> None:
    checked_out = SCHEMAS.newest("tillroll.cart.CartCheckedOut")
    opened = SCHEMAS.newest("tillroll.cart.CartOpened")
    order = next(service for service in declared_services(Settings.load()) if service.name == "order")
    assert [reader.how for reader in readers(order, checked_out, example_of(checked_out))] == ["`PlaceOrder`"]
    assert list(readers(order, opened, example_of(opened))) == []


def test_the_changes_of_a_version_are_told_in_words() -> None:
    assert history(SCHEMAS.records["tillroll.cart.ItemRemoved"]) == [
        (1, "the first"),
        (2, "`quantity` added, default `0`"),
        (3, "`quantity` is now `pieces_removed`"),
    ]
