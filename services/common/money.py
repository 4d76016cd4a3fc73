"""Money: integer minor units of one currency. No floats, no rounding, no exchange."""

from dataclasses import dataclass

from shared.errors import Refused

# The number of decimals of a currency (ISO 4217), where it is not two.
NO_DECIMALS = ["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI"]
NO_DECIMALS += ["VND", "VUV", "XAF", "XOF", "XPF"]
DECIMALS = dict.fromkeys(NO_DECIMALS, 0) | dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3)


@dataclass(frozen=True, slots=True)
class Money:
    amount: int
    currency: str

    def __add__(self, other: "Money") -> "Money":
        if other.currency != self.currency:
            raise Refused("currency-mixed", f"{self.currency} and {other.currency} cannot be added up.")
        return Money(self.amount + other.amount, self.currency)

    def times(self, count: int) -> "Money":
        return Money(self.amount * count, self.currency)

    def __str__(self) -> str:
        decimals = DECIMALS.get(self.currency, 2)
        whole, part = divmod(abs(self.amount), 10**decimals)
        sign = "-" if self.amount < 0 else ""
        return f"{sign}{whole}.{part:0{decimals}} {self.currency}" if decimals else f"{sign}{whole} {self.currency}"
