"""The pieces of one product, of which available + reserved + sold = supplied holds by construction."""

from typing import NamedTuple

from services.catalog.reservations import NO_RESERVATIONS, UNDONE, Bought, Held, Reservations


class Shelf(NamedTuple):
    supplied: int
    reserved: int
    sold: int
    orders: Reservations

    @property
    def available(self) -> int:
        return self.supplied - self.reserved - self.sold

    @property
    def on_hand(self) -> int:
        return self.supplied - self.sold

    def supply(self, delta: int) -> "Shelf":
        return Shelf(self.supplied + delta, self.reserved, self.sold, self.orders)

    def reserve(self, order_id: str, pieces: int) -> "Shelf":
        return Shelf(self.supplied, self.reserved + pieces, self.sold, self.orders.note(order_id, Held(pieces)))

    def release(self, order_id: str, pieces: int) -> "Shelf":
        return Shelf(self.supplied, self.reserved - pieces, self.sold, self.orders.note(order_id, UNDONE))

    def sell(self, order_id: str, pieces: int) -> "Shelf":
        orders = self.orders.note(order_id, Bought(pieces))
        return Shelf(self.supplied, self.reserved - pieces, self.sold + pieces, orders)

    def take_back(self, order_id: str, pieces: int) -> "Shelf":
        return Shelf(self.supplied, self.reserved, self.sold - pieces, self.orders.note(order_id, UNDONE))


BARE = Shelf(supplied=0, reserved=0, sold=0, orders=NO_RESERVATIONS)
