"""Declares the cart service: its rules, deadline, and the read model of products that it keeps for itself."""

from pathlib import Path

from services.cart import decider
from services.cart.api import REFUSAL_STATUSES, router
from services.cart.commands import AbandonCart, Command
from services.cart.events import CartOpened, Event
from services.cart.products import ProductCache
from services.cart.settings import CartSettings
from services.cart.views import PRODUCTS
from services.common.vault import VAULT
from shared.decider import Deadlines, Decider
from shared.service import Background, Projection, Service


def cart(settings: CartSettings) -> Service:
    products = ProductCache()
    idle_ms = int(settings.cart_idle_minutes * 60_000)

    # Only the opening sets a deadline. When it comes, the state says when to look again.
    def due(event: Event) -> int | None:
        return event.at + idle_ms if isinstance(event, CartOpened) else None

    deadlines: Deadlines[decider.Cart, Command, Event] = Deadlines(
        due=due,
        command=lambda now: AbandonCart(idle_ms=idle_ms, now=now),
        next=lambda state: decider.abandon_due(state, idle_ms),
    )
    return Service(
        name="cart",
        decider=Decider.of(decider, "cart", "cart.events", deadlines),
        router=lambda runtime: router(runtime, products, settings.currency),
        statuses=REFUSAL_STATUSES,
        projections=[Projection("products", ["catalog.products"], PRODUCTS.apply, PRODUCTS)],
        background=[Background("api", lambda runtime: products.follow(runtime.pool))],
        migrations=Path(__file__).with_name("migrations"),
        shared_schemas=[VAULT],
    )
