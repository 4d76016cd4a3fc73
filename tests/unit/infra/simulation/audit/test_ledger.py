"""The ledger on disk equals the ledger in memory."""

from pathlib import Path

from infra.simulation.audit.ledger import Came, Decided, Ledger, continue_ledger, create_ledger, read_ledger
from tests.unit.infra.simulation.audit.run import ENTRIES, OPENING


def contents(ledger: Ledger) -> dict[str, object]:
    return {name: value for name, value in vars(ledger).items() if name != "file"}


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "simulations" / "one.jsonl"
    with create_ledger(file) as ledger:
        for entry in [*ENTRIES, Came("shopper 1", "buy"), Decided("order-1", "confirmed", 88.5)]:
            ledger.note(entry)
    assert contents(read_ledger(file)) == contents(ledger)
    assert ledger.tally["POST /v1/carts"] == 1
    assert ledger.customers == {"ann", "bob"}
    assert len(file.read_bytes().splitlines()) == len(ENTRIES) + 2


def test_another_process_can_continue_a_ledger(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    with create_ledger(file) as opened:
        opened.note(OPENING)
    with continue_ledger(file) as ledger:
        for entry in ENTRIES[1:]:
            ledger.note(entry)
    assert ledger.opening == OPENING
    assert contents(read_ledger(file)) == contents(ledger)
