"""The ledger on disk equals the ledger in memory."""

from pathlib import Path

from infra.simulation.audit.ledger import Came, Decided, Ledger, continued, read_from, written_to
from tests.unit.infra.simulation.audit.run import ENTRIES, OPENING


def contents(ledger: Ledger) -> dict[str, object]:
    return {name: value for name, value in vars(ledger).items() if name != "file"}


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "simulations" / "one.jsonl"
    with written_to(file) as ledger:
        for entry in [*ENTRIES, Came("shopper 1", "buy"), Decided("order-1", "confirmed", 88.5)]:
            ledger.note(entry)
    assert contents(read_from(file)) == contents(ledger)
    assert ledger.tally["POST /v1/carts"] == 1
    assert ledger.customers == {"ann", "bob"}
    assert len(file.read_bytes().splitlines()) == len(ENTRIES) + 2


def test_another_process_can_continue_a_ledger(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    with written_to(file) as opened:
        opened.note(OPENING)
    with continued(file) as ledger:
        for entry in ENTRIES[1:]:
            ledger.note(entry)
    assert ledger.opening == OPENING
    assert contents(read_from(file)) == contents(ledger)
