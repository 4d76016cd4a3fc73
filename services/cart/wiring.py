"""The cart service, put together."""

from services.cart import decider
from services.cart.api import STATUSES, router
from services.cart.commands import AbandonCart, Command
from services.cart.events import CartOpened, Event
from services.cart.views import PRODUCTS
from shared.decider import Deadlines, Decider
from shared.service import Projection, Service
from shared.settings import Settings


def cart(settings: Settings) -> Service:
    idle_ms = int(settings.cart_idle_minutes * 60_000)

    # Only the opening sets a deadline; when it comes, the cart itself says when to look again.
    def due(event: Event) -> int | None:
        return event.at + idle_ms if isinstance(event, CartOpened) else None

    deadlines: Deadlines[decider.Cart, Command, Event] = Deadlines(
        due=due,
        command=lambda now: AbandonCart(idle_ms=idle_ms, now=now),
        next=lambda state: decider.abandon_due(state, idle_ms),
    )
    return Service(
        name="cart",
        decider=Decider(
            category="cart",
            topic="cart.events",
            initial=decider.initial,
            decide=decider.decide,
            evolve=decider.evolve,
            deadlines=deadlines,
        ),
        router=router,
        statuses=STATUSES,
        projections=[Projection("products", ["catalog.products"], PRODUCTS.apply, PRODUCTS)],
    )
