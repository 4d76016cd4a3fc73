"""Declares the order service: its rules, deadlines, read model, and the reactions that make it a saga."""

from pathlib import Path

from services.common.vault import VAULT
from services.order import decider
from services.order.api import REFUSAL_STATUSES, router
from services.order.commands import Command, ExpireOrder
from services.order.events import Event
from services.order.reactions import react
from services.order.settings import OrderSettings
from services.order.views import ORDERS
from shared.decider import Deadlines, Decider
from shared.messaging.reactions import Reaction
from shared.service import Projection, Service


def order(settings: OrderSettings) -> Service:
    patience_ms = int(settings.order_timeout_seconds * 1000)
    review_ms = int(settings.review_timeout_seconds * 1000)
    deadlines: Deadlines[decider.Order, Command, Event] = Deadlines(
        due=lambda event: decider.first_due(event, patience_ms),
        command=lambda now: ExpireOrder(patience_ms, review_ms, now),
        next=lambda state: decider.next_due(state, patience_ms, review_ms),
    )
    return Service(
        name="order",
        decider=Decider.of(decider, "order", "order.events", deadlines),
        router=router,
        statuses=REFUSAL_STATUSES,
        projections=[Projection("orders", ["order.events"], ORDERS.apply, ORDERS)],
        # The consumer stores its offsets under this name, so it stays.
        reactions=[Reaction("process", ["cart.events", "stock.events", "payment.events"], react)],
        migrations=Path(__file__).with_name("migrations"),
        shared_schemas=[VAULT],
    )
