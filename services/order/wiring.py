"""The order service, put together."""

from services.order import decider
from services.order.api import STATUSES, router
from services.order.commands import Command, ExpireOrder
from services.order.events import Event
from services.order.process import react
from services.order.views import ORDERS
from shared.decider import Deadlines, Decider
from shared.envelope import millis, now
from shared.service import Projection, Reaction, Service
from shared.settings import Settings


def order(settings: Settings) -> Service:
    patience_ms = int(settings.order_timeout_seconds * 1000)
    review_ms = int(settings.review_timeout_seconds * 1000)
    deadlines: Deadlines[decider.Order, Command, Event] = Deadlines(
        due=lambda event: decider.first_due(event, patience_ms),
        command=lambda now: ExpireOrder(patience_ms, review_ms, now),
        next=lambda state: decider.next_due(state, patience_ms, review_ms),
    )
    return Service(
        name="order",
        decider=Decider(
            category="order",
            topic="order.events",
            initial=decider.initial,
            decide=decider.decide,
            evolve=decider.evolve,
            deadlines=deadlines,
        ),
        router=router,
        statuses=STATUSES,
        projections=[Projection("orders", ["order.events"], ORDERS.apply, ORDERS)],
        reactions=[
            Reaction(
                "process",
                ["cart.events", "stock.events", "payment.events"],
                lambda message: react(message.type, message.data, message.stream_id, millis(now())),
            )
        ],
    )
