"""Example values for every field, so that a new event version gets an example that looks like the shop's own."""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

NOON = 1_767_268_800_000

# Values by field name, or by record and field if the name means something else there.
WORDS: dict[str, Any] = {
    "at": NOON,
    "available": 1,
    "counted": 34,
    "currency": "EUR",
    "declined_by": "provider",
    "delta": -6,
    "difference": -6,
    "idle_since": NOON,
    "name": "Emaille-Becher 350 ml, weiß",
    "new_name": "Emaille-Becher 350 ml, weiß",
    "new_price": {"amount": 1290, "currency": "EUR"},
    "old_name": "Enamel mug 350 ml",
    "old_price": {"amount": 1190, "currency": "EUR"},
    "payment_token": "tok_ok",
    "pieces_removed": 2,
    "price": {"amount": 1290, "currency": "EUR"},
    "quantity": 2,
    "reasons": ["five payments in one minute"],
    "recipient": "gAAAAABpVlRA-sealed-with-the-key-of-the-customer",
    "reference": "psp_7Q2MX4",
    "score": 87,
    "shipping_method": "express",
    "sku": "MUG-350",
    "stock": 40,
    "unit_price": {"amount": 1290, "currency": "EUR"},
    "version": 7,
    "window_end": NOON,
    "window_start": NOON - 300_000,
    "withdrawn": False,
    "CaptureDeclined.reason": "the authorisation has expired",
    "Money.amount": 2580,
    "OrderCancelled.reason": "out_of_stock",
    "PaymentDeclined.reasons": ["insufficient funds"],
    "StockCorrected.reason": "count",
}
PLAIN = {"int": 7, "long": 7_000_000_000, "float": 0.5, "double": 0.25, "boolean": True, "bytes": b"\0\xff"}


def example(schema: Any, name: str = "", known: dict[str, Any] | None = None) -> Any:
    """Returns an example for a parsed schema; of a union, its last branch, because the first is often null."""
    known = known if known is not None else schema["__named_schemas"]
    match schema:
        case list():
            return example(schema[-1], name, known)
        case {"type": "record"}:
            return {field["name"]: _field(schema, field, known) for field in schema["fields"]}
        case {"type": "array"}:
            return [example(schema["items"], name, known)]
        case {"type": "map"}:
            return {"key": example(schema["values"], name, known)}
        case {"type": "enum"}:
            return schema["symbols"][-1]
        case {"type": inner}:
            return example(inner, name, known)
        case str() if schema in known:
            return example(known[schema], name, known)
        case _:
            return PLAIN.get(schema, name)


def _field(record: Any, field: Any, known: dict[str, Any]) -> Any:
    name, qualified = field["name"], f"{record['name'].rpartition('.')[2]}.{field['name']}"
    if qualified in WORDS or name in WORDS:
        return WORDS.get(qualified, WORDS.get(name))
    if field["type"] == "string" and name.endswith("_id"):
        return str(uuid5(NAMESPACE_URL, f"till-roll:example:{name}"))
    return example(field["type"], name, known)
