"""The vocabulary of the cart's tests: customers, products, and short names for commands and events."""

from services.cart import decider
from services.cart.commands import AddItem, CheckOut, Command, Product, RemoveItem, SetQuantity
from services.cart.events import CartAbandoned, CartCheckedOut, CartOpened, ItemAdded, Line
from services.common.money import Money
from tests.unit.services.given import Scenario

given = Scenario(decider).given

ANN = "0190a5c0-0000-7000-8000-0000000000aa"
BOB = "0190a5c0-0000-7000-8000-0000000000bb"
ORDER = "6f2c0f4e-0000-5000-8000-000000000001"

NOON = 1_767_268_800_000
LATER = NOON + 60_000
HOUR = 3_600_000


def euro(cents: int) -> Money:
    return Money(cents, "EUR")


MUG, POT = "MUG-350", "POT-800"
A_MUG = Product("Enamel Mug", euro(1190))
A_POT = Product("Iron Teapot", euro(3990))
DEARER_MUG = Product("Enamel Mug", euro(1290))
YEN_MUG = Product("Enamel Mug", Money(1900, "JPY"))
WITHDRAWN_MUG = Product("Enamel Mug", euro(1190), withdrawn=True)

OPENED = CartOpened(ANN, NOON)
MUG_ADDED = ItemAdded(MUG, "Enamel Mug", 2, euro(1190), NOON)
POT_ADDED = ItemAdded(POT, "Iron Teapot", 1, euro(3990), NOON)
ABANDONED = CartAbandoned(idle_since=NOON, lines=(Line(MUG, "Enamel Mug", 2, euro(1190)),))
CHECKED_OUT = CartCheckedOut(
    order_id=ORDER,
    customer_id=ANN,
    lines=(Line(MUG, "Enamel Mug", 2, euro(1190)), Line(POT, "Iron Teapot", 1, euro(3990))),
    total=euro(6370),
    payment_token="tok_ok",
    shipping_method="standard",
    recipient="sealed",
)


def add(sku: str, product: Product | None, quantity: int = 1, customer: str = ANN) -> AddItem:
    return AddItem(customer, sku, quantity, product, LATER)


def set_quantity(sku: str, product: Product | None, quantity: int) -> SetQuantity:
    return SetQuantity(ANN, sku, quantity, product, LATER)


def remove(sku: str) -> RemoveItem:
    return RemoveItem(ANN, sku, LATER)


def check_out(products: dict[str, Product]) -> CheckOut:
    return CheckOut(ANN, ORDER, products, "tok_ok", "standard", "sealed")


ANYTHING_A_SHOPPER_ASKS: list[Command] = [
    add(MUG, A_MUG),
    set_quantity(MUG, A_MUG, 3),
    remove(MUG),
    check_out({MUG: A_MUG, POT: A_POT}),
]
