"""A locust user that keeps a ledger of every answer, and of every checkout with its cart."""

import time
from typing import Any, ClassVar

import orjson
from locust import FastHttpUser, events
from uuid_utils import uuid7

from infra.settings import Settings
from infra.simulation.audit.books import PENDING
from infra.simulation.audit.ledger import Answered, Asked, Came, Decided, Ledger
from infra.simulation.shoppers.shopper import SHIPPING, accepted
from shared.http.problems import TYPE
from shared.settings import HOST

PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.1


class Buyer(FastHttpUser):
    abstract = True
    host = f"http://{HOST}:{Settings.load().shop_port}"
    ledger: ClassVar[Ledger] = Ledger()
    """The ledger of all users of this process; each run has a new one."""
    token = ""

    def come_in(self, visit: str) -> None:
        """Begins a visit as a new customer, because the risk check suspects one who pays all the time."""
        self.ledger.note(Came(type(self).__name__, visit))
        self.token = ""
        session = self.ask("POST", "/v1/sessions")
        self.token = session["token"] if session else ""

    def buy(self, lines: dict[str, int], payment_token: str) -> str:
        """Buys, and returns the final status of the order, or nothing if it has none yet."""
        cart = self.ask("POST", "/v1/carts")
        for sku, quantity in lines.items():
            if not cart:
                return ""
            line = {"sku": sku, "quantity": quantity}
            cart = self.ask("POST", "/v1/carts/{cart_id}/items", line, cart_id=cart["cart_id"])
        return self._check_out(cart, payment_token) if cart else ""

    def _check_out(self, cart: dict[str, Any], payment_token: str) -> str:
        self.ledger.note(Asked(cart["cart_id"]))
        began = time.perf_counter()
        body = {"payment_token": payment_token, "shipping": SHIPPING}
        order = self.ask("POST", "/v1/carts/{cart_id}/checkout", body, cart_id=cart["cart_id"])
        if not order:
            return ""
        self.ledger.note(accepted(order["order_id"], cart, payment_token))
        return self._until_decided(order["order_id"], began)

    def _until_decided(self, order_id: str, began: float) -> str:
        while (elapsed := time.perf_counter() - began) < PATIENCE_SECONDS:
            order = self.ask("GET", "/v1/orders/{order_id}", order_id=order_id)
            if order and order["status"] not in PENDING:
                status: str = order["status"]
                self.ledger.note(Decided(order_id, status, round(elapsed * 1000, 3)))
                events.request.fire(  # type: ignore[no-untyped-call]
                    request_type="ORDER",
                    name="checkout to decided",
                    response_time=elapsed * 1000,
                    response_length=0,
                    exception=None,
                    context={},
                )
                return status
            time.sleep(POLL_SECONDS)  # gevent's sleep: other users go on
        return ""

    def ask(self, method: str, route: str, body: Any = None, **names: str) -> dict[str, Any] | None:
        """Sends a request and returns the answer, or None if that was a problem."""
        path, call = route.format_map(names), route.partition("?")[0]
        headers = {"Idempotency-Key": str(uuid7())} | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        data = orjson.dumps(body).decode() if body is not None else None
        began = time.perf_counter()
        response = self.client.request(method, path, name=call, data=data, headers=headers)
        ms = round((time.perf_counter() - began) * 1000, 3)
        document: dict[str, Any] = orjson.loads(response.text) if response.text else {}
        problem = "" if 200 <= response.status_code < 300 else document.get("type", "no answer").removeprefix(TYPE)
        self.ledger.note(Answered(type(self).__name__, f"{method} {call}", path, response.status_code, ms, problem))
        return None if problem else document
