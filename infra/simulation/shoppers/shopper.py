"""A simulated shopper: carries out the steps of a visit, whatever the shop answers to each."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from infra.simulation.audit.books import PENDING
from infra.simulation.audit.ledger import Asked, CancelAccepted, CheckedOut, Decided, Ledger
from infra.simulation.shoppers.calls import Answer, Calls, NoAnswer
from infra.simulation.shoppers.steps import (
    Add,
    Arrive,
    Await,
    Browse,
    Cancel,
    CheckOut,
    Decision,
    Look,
    OpenCart,
    Pause,
    Remove,
    SetQuantity,
    Step,
    Visit,
)

SHIPPING = {"method": "standard", "name": "Robin Shopper", "address": "1 Market Square\nOldtown"}
PATIENCE_SECONDS = 8.0
POLL_SECONDS = 0.05


class Shopper:
    def __init__(self, calls: Calls, support: Calls, ledger: Ledger, is_closing: Callable[[], bool]) -> None:
        self._anonymous = self._calls = calls
        self._support = support
        self._ledger = ledger
        self._is_closing = is_closing
        self._cart: dict[str, Any] = {}
        self._order_id = ""
        self._sent = 0.0

    async def carry_out(self, visit: Visit) -> None:
        """Carries out a visit until its last step, until the shop closes, or until a request gets no answer."""
        with suppress(NoAnswer):
            for step in visit.steps:
                if self._is_closing():
                    return
                await self._do(step)

    async def _do(self, step: Step) -> None:
        match step:
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Arrive():
                await self._arrive()
            case Browse(after):
                await self._calls.get(f"/v1/products?limit=20&cursor={after}" if after else "/v1/products?limit=20")
            case Look(sku):
                await self._calls.get("/v1/products/{sku}", sku=sku)
            case OpenCart():
                self._remember(await self._calls.write("POST", "/v1/carts"))
            case Add(sku, quantity):
                await self._change("POST", "/v1/carts/{cart_id}/items", {"sku": sku, "quantity": quantity})
            case SetQuantity(sku, quantity):
                await self._change("PUT", "/v1/carts/{cart_id}/items/{sku}", {"quantity": quantity}, sku=sku)
            case Remove(sku):
                await self._change("DELETE", "/v1/carts/{cart_id}/items/{sku}", sku=sku)
            case CheckOut(token, clicks):
                await self._check_out(token, clicks)
            case Await(review):
                await self._await(review)
            case Cancel(insist):
                await self._cancel(insist)

    async def _arrive(self) -> None:
        session = await self._anonymous.write("POST", "/v1/sessions")
        if session.is_success:
            self._calls = self._anonymous.with_token(session.body["token"])

    async def _change(self, method: str, route: str, body: Any = None, **names: str) -> None:
        if self._cart:
            self._remember(await self._calls.write(method, route, body, cart_id=self._cart["cart_id"], **names))

    def _remember(self, answer: Answer) -> None:
        if answer.is_success:
            self._cart = answer.body

    async def _check_out(self, token: str, clicks: int) -> None:
        cart, self._cart, self._order_id = self._cart, {}, ""
        if not cart:
            return
        body, key = {"payment_token": token, "shipping": SHIPPING}, str(uuid4())
        self._ledger.note(Asked(cart["cart_id"]))
        self._sent = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(clicks):
                tasks.create_task(self._click(cart, body, key))

    async def _click(self, cart: dict[str, Any], body: dict[str, Any], key: str) -> None:
        with suppress(NoAnswer):
            answer = await self._calls.write("POST", "/v1/carts/{cart_id}/checkout", body, key, cart_id=cart["cart_id"])
            if answer.is_success:
                self._order_id = answer.body["order_id"]
                self._ledger.note(accepted(self._order_id, cart, body["payment_token"]))

    async def _await(self, review: Decision) -> None:
        if not self._order_id:
            return
        order = await self._until_decided()
        if order and order["status"] == "in_review" and review:
            await self._support.write(
                "POST", "/v1/payments/{payment_id}/review", {"decision": review}, payment_id=order["payment_id"]
            )
            await self._until_decided({"in_review"} | PENDING)

    async def _until_decided(self, undecided: set[str] = PENDING) -> dict[str, Any] | None:
        give_up = time.perf_counter() + PATIENCE_SECONDS
        while time.perf_counter() < give_up and not self._is_closing():
            answer = await self._calls.get("/v1/orders/{order_id}", order_id=self._order_id)
            if answer.is_success and answer.body["status"] not in undecided:
                ms = (time.perf_counter() - self._sent) * 1000
                self._ledger.note(Decided(self._order_id, answer.body["status"], round(ms, 3)))
                order: dict[str, Any] = answer.body
                return order
            await asyncio.sleep(POLL_SECONDS)
        return None

    async def _cancel(self, insist: bool) -> None:
        if not self._order_id:
            return
        answer = await self._calls.write("POST", "/v1/orders/{order_id}/cancel", order_id=self._order_id)
        if not answer.is_success and insist:
            answer = await self._support.write("POST", "/v1/orders/{order_id}/cancel", order_id=self._order_id)
        if answer.is_success:
            self._ledger.note(CancelAccepted(self._order_id))


def accepted(order_id: str, cart: dict[str, Any], token: str) -> CheckedOut:
    return CheckedOut(
        order_id=order_id,
        cart_id=cart["cart_id"],
        customer_id=cart["customer_id"],
        token=token,
        lines={line["sku"]: line["quantity"] for line in cart["lines"]},
        amount=cart["total"]["amount"],
        currency=cart["total"]["currency"],
    )
