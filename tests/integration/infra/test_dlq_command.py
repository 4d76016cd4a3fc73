"""`till dlq` as an operator uses it: an order is stuck, the cause is fixed, a retry lets it finish."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import httpx
import pytest

from infra.local.processes.ports import free_ports
from services.cart.api import order_of
from services.order.decider import payment_of
from tests.e2e.provider import moved, provider
from tests.e2e.shop import CHECKOUT, Shop, new_sku, open_cart, put_in, put_product, started
from tests.integration.services.refusing import REFUSAL, refusing
from tests.till import RunTill, Till, eventually, run_in_process


@pytest.fixture(scope="module")
def environment(stack_environment: dict[str, str], stack: object) -> dict[str, str]:
    return stack_environment | {"TILL_PSP_PORT": str(free_ports(1)[0])}


@pytest.fixture(scope="module")
def psp(environment: dict[str, str]) -> Iterator[str]:
    with provider(environment) as url:
        yield url


@pytest.fixture(scope="module")
def shop(environment: dict[str, str], psp: str) -> Iterator[Shop]:
    with started(environment) as shop:
        yield shop


@pytest.fixture
def dlq(environment: dict[str, str]) -> RunTill:
    """Runs `till dlq` in this process."""
    return partial(run_in_process(environment), "dlq")


@pytest.fixture
def guest(shop: Shop) -> Iterator[httpx.Client]:
    with shop.guest() as guest:
        yield guest


@dataclass(frozen=True)
class Stuck:
    """An order whose payment could not be requested."""

    guest: httpx.Client
    path: str
    payment_id: str
    letter: str

    def status(self) -> str:
        return str(self.guest.get(self.path).json()["status"])


@contextmanager
def stuck_order(shop: Shop, dlq: RunTill, guest: httpx.Client) -> Iterator[Stuck]:
    """Makes an order fail during the block; then the fault is fixed."""
    with shop.staff("operator") as operator:
        mug = put_product(operator, new_sku())
    cart = open_cart(guest)
    put_in(guest, cart, mug)
    order_id = order_of(cart.removeprefix("/v1/carts/"))
    payment_id = payment_of(order_id)
    with refusing(shop, "payment", f"payment:{payment_id}"):
        path = guest.post(f"{cart}/checkout", json=CHECKOUT).headers["Location"]

        def letters() -> list[str]:
            found = dlq("list", "--service", "payment", "--json").document
            return [one["id"] for one in found if one["stream"] == f"order:{order_id}"]

        eventually(lambda: bool(letters()), "a dead letter is listed")
        yield Stuck(guest, path, payment_id, letters()[0])


def test_an_order_that_was_stuck_is_finished_by_a_retry(
    shop: Shop, dlq: RunTill, guest: httpx.Client, psp: str
) -> None:
    with stuck_order(shop, dlq, guest) as stuck:
        listed = dlq("list")
        assert listed.code == 0
        assert f"{stuck.letter}  " in listed.out
        assert REFUSAL in listed.out

        again = dlq("retry", stuck.letter)
        assert (again.code, again.out) == (1, f"✗ {stuck.letter} failed again: {REFUSAL}\n")
        plan = dlq("show", stuck.letter, "--json").document["retry"]
        assert plan["error"] == REFUSAL
        assert stuck.status() == "reserved"

    shown = dlq("show", stuck.letter, "--json")
    assert shown.code == 0
    assert shown.document["consumer"] == "payment.orders"
    assert (shown.document["topic"], shown.document["type"]) == ("order.events", "PaymentRequested")
    assert shown.document["payload"]["payment_id"] == stuck.payment_id
    assert shown.document["causes"] == [REFUSAL]
    assert "Traceback" in shown.document["trace"]
    assert ["ce_type", "PaymentRequested"] in shown.document["headers"]
    plan = shown.document["retry"]
    stream_id = f"payment:{stuck.payment_id}"
    assert [(c["stream"], c["command"]) for c in plan["commands"]] == [(stream_id, "RequestPayment")]
    assert plan["events"] == [{"stream_id": stream_id, "version": 1, "type": "AuthorizationRequested"}]
    assert plan["error"] is None
    assert shop.fetch("payment", "SELECT FROM events WHERE stream_id = $1", stream_id) == [], "it only showed"

    printed = dlq("show", stuck.letter).out
    assert f'  "payment_id": "{stuck.payment_id}"' in printed
    assert f"append AuthorizationRequested to {stream_id} as version 1" in printed

    retried = dlq("retry", stuck.letter)
    assert (retried.code, retried.out) == (0, f"✓ {stuck.letter} retried\n")
    eventually(lambda: stuck.status() == "confirmed", "the order is confirmed")
    once_more = dlq("retry", stuck.letter, "--json")
    assert once_more.code == 0
    assert once_more.document[0]["before"]["how"] == "retried"
    eventually(lambda: moved(psp, stuck.payment_id) == ["authorized", "captured"], "the money moved once")

    assert stuck.letter not in dlq("list").out
    [settled] = [one for one in dlq("list", "--all", "--json").document if one["id"] == stuck.letter]
    assert settled["settled"]["how"] == "retried"
    assert settled["settled"]["by"]
    assert dlq("show", stuck.letter, "--json").document["retry"] is None


def test_retry_all_retries_every_waiting_letter_except_dropped_ones(
    shop: Shop, dlq: RunTill, guest: httpx.Client
) -> None:
    """Letters of other tests may be waiting, too."""

    def retry_all() -> dict[str, bool]:
        ran = dlq("retry", "--all", "--json")
        done = {one["id"]: one["ok"] for one in ran.document}
        assert ran.code == (0 if all(done.values()) else 1)
        return {letter: ok for letter, ok in done.items() if letter in (kept.letter, dropped.letter)}

    with stuck_order(shop, dlq, guest) as kept, stuck_order(shop, dlq, guest) as dropped:
        reason = "the customer paid in cash"
        assert dlq("drop", dropped.letter, "--reason", reason).code == 0
        assert retry_all() == {kept.letter: False}
    assert retry_all() == {kept.letter: True}
    assert retry_all() == {}
    eventually(lambda: kept.status() == "confirmed", "the order is confirmed")
    assert dropped.status() == "reserved"
    refused = dlq("retry", dropped.letter)
    assert refused.code == 1
    assert reason in refused.out
    assert reason in dlq("list", "--all").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "cart"], "is not the id of a dead letter"),
        (["show", "cart.dlq/0/x"], "is not the id of a dead letter"),
        (["show", "cart.dlq/0/-1"], "is not the id of a dead letter"),
        (["retry", "cart.events/0/1"], "is not the id of a dead letter"),
        (["retry", "nobody.dlq/0/1"], "There is no service nobody"),
        (["list", "--service", "nobody"], "There is no service nobody"),
        (["retry"], "Name dead letters, or use --all"),
        (["retry", "cart.dlq/0/1", "--all"], "Name dead letters, or use --all"),
        (["drop", "cart.dlq/0/1"], "--reason"),
        (["drop", "cart.dlq/0/1", "--reason", " "], "The reason is empty"),
    ],
    ids=" ".join,
)
def test_bad_usage_of_dlq_has_exit_code_2(dlq: RunTill, arguments: list[str], message: str) -> None:
    ran = dlq(*arguments)
    assert ran.code == 2, ran.out
    assert message in ran.err


@pytest.mark.parametrize("command", [["show"], ["retry"], ["drop", "--reason", "none"]], ids=" ".join)
def test_a_dead_letter_that_does_not_exist_is_an_error(dlq: RunTill, command: list[str]) -> None:
    ran = dlq(*command, "cart.dlq/0/999999")
    assert (ran.code, ran.err.splitlines()[0]) == (1, "There is no dead letter cart.dlq/0/999999.")


@pytest.mark.parametrize(
    "setting", ["TILL_KAFKA_BOOTSTRAP=127.0.0.1:1", "TILL_DATABASE_URL=postgresql://x@127.0.0.1:1/x"]
)
def test_a_server_that_does_not_answer_is_a_clear_error(environment: dict[str, str], setting: str) -> None:
    name, _, value = setting.partition("=")
    ran = Till(environment)("dlq", "list", **{name: value})
    assert ran.code == 1
    assert "does not answer" in ran.err
    assert "Traceback" not in ran.err
