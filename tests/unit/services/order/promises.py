"""Checks the invariants I2, I4 and I9 from orders, stock and the provider's book, whatever has happened."""

from collections.abc import Mapping

from services.catalog.events import ProductListed, StockReleased, StockReserved, StockReturned, StockSold
from services.order.decider import Cancelled, Confirmed, InReview, Unplaced, next_due, payment_of
from services.order.events import OrderConfirmed, OrderPlaced
from services.payment.decider import Held
from tests.unit.services.order.provider import Book, moved
from tests.unit.services.order.world import PROVIDER, History, World, arrivals


def check_always(world: World) -> None:
    """Checks what holds at every moment."""
    book: Book = world.streams[PROVIDER].state
    for history in orders(world):
        order_id = ordered(history).order_id
        if payment_of(order_id) in moved(book, "capture"):
            assert was_confirmed(history), f"money was taken for {order_id}, which was not confirmed"
        if not isinstance(history.state, Confirmed | Cancelled):
            assert next_due(history.state, 1, 1) is not None, f"{order_id} could wait forever"
    for shelf in shelves(world):
        assert reserved(shelf) + sold(shelf) <= supplied(shelf), "a piece was promised twice"


def check_at_rest(world: World) -> None:
    """Checks what holds once every message has arrived."""
    check_always(world)
    for history in orders(world):
        check_money(world, history)
        check_pieces(world, history)
    check_sums(world)
    assert not arrivals(world), "a message makes a difference only when it comes again"


def check_money(world: World, history: History) -> None:
    book, payment_id = world.streams[PROVIDER].state, payment_of(ordered(history).order_id)
    authorized, captured = moved(book, "authorize").get(payment_id, 0), moved(book, "capture").get(payment_id, 0)
    voided, refunded = moved(book, "void").get(payment_id, 0), moved(book, "refund").get(payment_id, 0)
    assert authorized == captured + voided, "an authorisation was left open"
    match history.state:
        case Confirmed(order):
            assert (captured, refunded) == (order.total.amount, 0), "a confirmed order is not paid"
        case Cancelled():
            assert captured == refunded, "money was kept for a cancelled order"
        case InReview():
            assert isinstance(world.streams[f"payment:{payment_id}"].state, Held), "nobody reviews this payment"
            assert not authorized
        case state:
            raise AssertionError(f"an order is stuck: {state}")


def check_pieces(world: World, history: History) -> None:
    order = ordered(history)
    is_final = isinstance(history.state, Confirmed | Cancelled)
    for line in order.lines:
        shelf = world.streams[f"stock:{line.sku}"]
        held, gone = reserved(shelf, order.order_id), sold(shelf, order.order_id)
        assert held == (0 if is_final else line.quantity), "pieces are kept for a final order"
        if isinstance(history.state, Confirmed):
            assert gone == line.quantity, "a confirmed order has not got its pieces"
        else:
            assert gone == 0, "pieces stayed with an order that is not confirmed"


def check_sums(world: World) -> None:
    book: Book = world.streams[PROVIDER].state
    confirmed = [history.state.order.total.amount for history in orders(world) if isinstance(history.state, Confirmed)]
    assert sum(confirmed) == sum(moved(book, "capture").values()) - sum(moved(book, "refund").values())
    for shelf in shelves(world):
        available = shelf.state.shelf.available
        assert available + reserved(shelf) + sold(shelf) == supplied(shelf), "pieces have leaked"


def orders(world: World) -> list[History]:
    return [history for stream, history in world.streams.items() if stream.startswith("order:")]


def shelves(world: World) -> list[History]:
    return [history for stream, history in world.streams.items() if stream.startswith("stock:")]


def ordered(history: History) -> OrderPlaced:
    assert not isinstance(history.state, Unplaced)
    order: OrderPlaced = history.state.order
    return order


def was_confirmed(history: History) -> bool:
    return any(isinstance(event, OrderConfirmed) for event in history.events)


def supplied(shelf: History) -> int:
    return sum(event.stock for event in shelf.events if isinstance(event, ProductListed))


def sold(shelf: History, order_id: str = "") -> int:
    return counted({StockSold: 1, StockReturned: -1}, shelf, order_id)


def reserved(shelf: History, order_id: str = "") -> int:
    return counted({StockReserved: 1, StockReleased: -1, StockSold: -1}, shelf, order_id)


def counted(signs: Mapping[type, int], shelf: History, order_id: str) -> int:
    """Counts from the events, independently of the fold that is under test."""
    moves = [event for event in shelf.events if type(event) in signs and order_id in ("", event.order_id)]
    return sum(signs[type(event)] * event.quantity for event in moves)
