"""The steps of a visit. A visit is planned as data, so that the same seed plans the same visits."""

from dataclasses import dataclass
from typing import Literal

Decision = Literal["approve", "reject", ""]
"""The decision of support on a held payment. Without one it stays held."""


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    price: int
    available: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """Begins a session as a new guest."""


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
    """Clicks of an impatient shopper before the answer arrives."""


@dataclass(frozen=True, slots=True)
class Await:
    """Waits until the order is decided or held for review, which support may then do."""

    review: Decision = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    insist: bool
    """If it is too late to cancel, ask support to do it."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Step = Arrive | Browse | Look | OpenCart | Add | SetQuantity | Remove | CheckOut | Await | Cancel | Pause


@dataclass(frozen=True, slots=True)
class Visit:
    kind: str
    steps: tuple[Step, ...]
