"""Every service of the shop, listed once: the shop's own process and the operator's tools start from here.

A command that reads a store, such as `till state`, needs only the decider of its service and has 300 ms for everything.
Nothing is imported before it is needed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from shared.decider import Decider

if TYPE_CHECKING:
    from services.shop.settings import ShopSettings
    from shared.service import Service


def shop_services(settings: "ShopSettings") -> "list[Service]":
    """Returns all services, complete with HTTP, consumers and views. Importing them takes a second."""
    from services.cart.wiring import cart
    from services.catalog.wiring import catalog
    from services.order.wiring import order
    from services.payment.wiring import payment

    return [cart(settings), catalog(settings), order(settings), payment(settings)]


def all_deciders() -> dict[str, Decider[Any, Any, Any]]:
    """Returns the deciders by service. A test compares them with those of `shop_services`."""
    return {streams.service: streams.load_decider() for streams in STREAMS.values()}


def decider_of(category: str) -> dict[str, Decider[Any, Any, Any]]:
    """Returns the decider of one category of streams by its service, and imports no other."""
    streams = STREAMS[category]
    return {streams.service: streams.load_decider()}


def _carts() -> Decider[Any, Any, Any]:
    from services.cart import decider

    return Decider.of(decider, "cart", "cart.events")


def _stock() -> Decider[Any, Any, Any]:
    from services.catalog import decider

    return Decider.of(decider, "stock", "stock.events")


def _orders() -> Decider[Any, Any, Any]:
    from services.order import decider

    return Decider.of(decider, "order", "order.events")


def _payments() -> Decider[Any, Any, Any]:
    from services.payment import decider

    return Decider.of(decider, "payment", "payment.events")


class Streams(NamedTuple):
    """A category of streams: the service that owns it, and how to load the decider."""

    service: str
    load_decider: Callable[[], Decider[Any, Any, Any]]


STREAMS = {
    "cart": Streams("cart", _carts),
    "stock": Streams("catalog", _stock),
    "order": Streams("order", _orders),
    "payment": Streams("payment", _payments),
}
