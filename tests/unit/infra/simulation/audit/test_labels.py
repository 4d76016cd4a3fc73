"""Fraudulent orders are labelled from the ledgers of simulations."""

from dataclasses import asdict
from pathlib import Path
from random import Random

import orjson

from infra.simulation.audit.labels import FRAUD, visits_of_orders
from infra.simulation.audit.ledger import Answered, Came, CheckedOut, Entry
from infra.simulation.shoppers.fraud import PATTERNS
from infra.simulation.shoppers.steps import Product

CHECKOUT = "POST /v1/carts/{cart_id}/checkout"
PRODUCTS = [Product(f"MUG-{n}", 100 * n, 50) for n in range(1, 30)]


def checked_out(who: str, cart: str, order: str) -> list[Entry]:
    answered = Answered(who, CHECKOUT, f"/v1/carts/{cart}/checkout", 202, 1.0)
    return [answered, CheckedOut(order, cart, "customer", "tok_ok", {}, 100, "EUR")]


def write(path: Path, entries: list[Entry], rest: bytes = b"") -> Path:
    lines = [orjson.dumps({"kind": type(entry).__name__} | asdict(entry)) + b"\n" for entry in entries]
    path.write_bytes(b"".join(lines) + rest)
    return path


def test_every_fraudulent_kind_of_visit_is_labelled_as_fraud() -> None:
    assert {pattern(Random(1), PRODUCTS).kind for pattern in PATTERNS} == FRAUD


def test_an_order_belongs_to_the_visit_in_which_it_was_placed(tmp_path: Path) -> None:
    first = [Came("1", "buy"), Came("2", "card testing"), *checked_out("1", "a", "A"), *checked_out("2", "b", "B")]
    later = [Came("1", "many accounts"), *checked_out("2", "c", "C"), *checked_out("1", "d", "D")]
    ledgers = [
        write(tmp_path / "1.jsonl", [*first, *later]),
        write(tmp_path / "2.jsonl", [Came("1", "cancel"), *checked_out("1", "e", "E")]),
    ]
    assert visits_of_orders(ledgers) == {
        "A": "buy",
        "B": "card testing",
        "C": "card testing",
        "D": "many accounts",
        "E": "cancel",
    }


def test_the_incomplete_last_line_of_a_killed_simulation_is_ignored(tmp_path: Path) -> None:
    ledger = write(
        tmp_path / "1.jsonl", [Came("1", "buy"), *checked_out("1", "a", "A")], b'{"kind": "CheckedOut", "ord'
    )
    assert visits_of_orders([ledger]) == {"A": "buy"}
