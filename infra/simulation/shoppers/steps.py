"""What a shopper can do next. A visit is planned as data, so that the same seed plans the same visits."""

from dataclasses import dataclass
from typing import Literal

Decision = Literal["approve", "reject", ""]
"""Of support, on a payment that is held; or none, and it stays held."""


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    price: int
    available: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """As a guest nobody has seen before."""


@dataclass(frozen=True, slots=True)
class Browse:
    after: str


@dataclass(frozen=True, slots=True)
class Look:
    sku: str


@dataclass(frozen=True, slots=True)
class OpenCart:
    pass


@dataclass(frozen=True, slots=True)
class Add:
    sku: str
    quantity: int = 1


@dataclass(frozen=True, slots=True)
class SetQuantity:
    sku: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Remove:
    sku: str


@dataclass(frozen=True, slots=True)
class CheckOut:
    token: str
    clicks: int = 1
    """Impatient people click again before the answer is there."""


@dataclass(frozen=True, slots=True)
class Await:
    """Until the order is decided, or held for a review. Then support may review it."""

    review: Decision = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    insist: bool
    """Too late to do it oneself: ask support."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Step = Arrive | Browse | Look | OpenCart | Add | SetQuantity | Remove | CheckOut | Await | Cancel | Pause


@dataclass(frozen=True, slots=True)
class Visit:
    kind: str
    steps: tuple[Step, ...]
