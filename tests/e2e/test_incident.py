"""Runs the five commands of docs/incident.md on a shop where a customer was charged and has no order."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import Template

import httpx
import pytest
from click.testing import CliRunner

from infra.cli import till
from infra.local.processes.ports import free_ports
from services.order.decider import payment_of
from tests.e2e.provider import moved, provider
from tests.e2e.shop import CHECKOUT, Shop, buy, new_sku, open_cart, put_in, put_product, settled, started
from tests.till import eventually

PAGE = Path(__file__).parents[2] / "docs" / "incident.md"
TOTAL = "23.80 EUR"


@dataclass(frozen=True)
class Incident:
    shop: Shop
    order_id: str

    @property
    def payment_id(self) -> str:
        return payment_of(self.order_id)

    def run(self, command: str) -> str:
        """Runs a command of the page in this process."""
        _, *arguments = Template(command).substitute(ORDER=self.order_id, PAYMENT=self.payment_id).split()
        ran = CliRunner().invoke(till, arguments, env=self.shop.environment)
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    def payment(self) -> str:
        rows = self.shop.fetch(
            "payment", "SELECT type FROM events WHERE stream_id = $1 ORDER BY version", f"payment:{self.payment_id}"
        )
        return " ".join(row[0] for row in rows)


@pytest.fixture(scope="module")
def environment(stack_environment: dict[str, str], stack: object) -> dict[str, str]:
    return stack_environment | {
        "TILL_PSP_PORT": str(free_ports(1)[0]),
        "TILL_PSP_LATENCY_MS": "5",
        "TILL_PSP_LATE_SECONDS": "30",
        "TILL_PSP_TIMEOUT": "20",
        "TILL_ORDER_TIMEOUT_SECONDS": "6",
    }


@pytest.fixture(scope="module")
def incident(environment: dict[str, str]) -> Iterator[Incident]:
    """The provider authorised the payment and went down before it answered, and the order timed out."""
    with ExitStack() as away, started(environment) as shop:
        psp = away.enter_context(provider(environment))
        with shop.staff("operator") as operator, shop.guest() as ann:
            mug = put_product(operator, new_sku(), 1190, stock=50)
            # Every service is running now, so the order timeout is spent on the order below alone.
            eventually(lambda: settled(ann, buy(ann, mug))["status"] == "confirmed", "an order is confirmed", 60)
            cart = open_cart(ann)
            put_in(ann, cart, mug, 2)
            answer = ann.post(f"{cart}/checkout", json=CHECKOUT | {"payment_token": "tok_timeout"})
            order_id = answer.json()["order_id"]
            eventually(
                lambda: moved(psp, payment_of(order_id)) == ["authorized"], "the provider has authorised the payment"
            )
            away.close()
            eventually(lambda: _is_cancelled(ann, order_id), "the order ran out of time")
        incident = Incident(shop, order_id)
        eventually(lambda: incident.payment().endswith("PaymentCancelled"), "the payment is cancelled")
        yield incident
        assert shop.stop() == 0, shop.log.read_text()


def _is_cancelled(guest: httpx.Client, order_id: str) -> bool:
    order = guest.get(f"/v1/orders/{order_id}")
    return order.status_code == 200 and order.json()["status"] == "cancelled"


def commands() -> list[str]:
    return re.findall(r"^till .+$", PAGE.read_text(), re.MULTILINE)


def test_the_five_commands_of_the_incident_page_find_the_cause(incident: Incident, environment: dict[str, str]) -> None:
    first, story, state, why, at = commands()

    order = incident.run(first)
    assert re.search(r"status +reserved → cancelled\n +reason +timeout", order)
    assert incident.payment_id in order

    printed = incident.run(story)
    types = re.findall(r"\b(?:Order|Payment|Authorization|Stock|Cart)[A-Z]\w+", printed)
    assert types.index("AuthorizationRequested") < types.index("OrderCancelled") < types.index("PaymentCancelled")
    assert "PaymentAuthorized" not in types

    assert re.search(r"status +authorizing\n", incident.run(state))
    assert re.search(r"cancelled +yes\n", incident.run(state))

    because = incident.run(why)
    assert re.search(r"^request .*\n└── CartCheckedOut .*\n    └── OrderPlaced", because, re.MULTILINE)
    assert f"the answer to authorize {TOTAL}, from the payment provider" in because
    assert "it is asked again, with the same key" in because

    assert re.search(r"payments .*\d authorizing", incident.run(at))


def test_once_the_provider_is_back_the_money_is_returned(incident: Incident, environment: dict[str, str]) -> None:
    with provider(environment | {"TILL_PSP_LATE_SECONDS": "0"}) as psp:
        eventually(
            lambda: moved(psp, incident.payment_id) == ["authorized", "voided"], "the authorisation is voided", 40
        )
        eventually(lambda: incident.payment().endswith("PaymentVoided"), "the shop has recorded that", 40)
    why = incident.run("till why payment:$PAYMENT")
    assert "Nothing is pending." in why
    assert "voided, since PaymentVoided" in why


def test_the_incident_page_has_five_commands_and_says_what_they_print() -> None:
    assert len(commands()) == 5
    for phrase in ("reserved → cancelled", "from the payment provider", "it is asked again, with the same key"):
        assert phrase in PAGE.read_text()
