"""Pairs of schemas, an older and a newer one: allowed changes, refused changes and ambiguous ones."""

from typing import Any

from tests.unit.shared.schemas.contract.schema_folder import AT, NOTE, SKU, record

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED"]}
MORE_COLOURS = {**COLOUR, "symbols": ["RED", "BLUE"]}
ANY_COLOUR = {**COLOUR, "default": "RED"}
ANY_OF_MORE = {**MORE_COLOURS, "default": "RED"}
PRICE: dict[str, Any] = {"type": "record", "name": "Price", "fields": [{"name": "amount", "type": "long"}]}
TAXED = {"type": "record", "name": "Price", "fields": [*PRICE["fields"], {"name": "tax", "type": "long"}]}


def paid(*fields: dict[str, Any]) -> dict[str, Any]:
    return record("Paid", *fields)


def one(kind: Any, **more: Any) -> dict[str, Any]:
    return paid({"name": "x", "type": kind, **more})


ALLOWED = [
    (paid(SKU), paid(SKU)),
    (paid(SKU), paid(SKU, NOTE)),
    (paid(SKU, NOTE), paid(SKU)),
    (paid(SKU, NOTE), paid(NOTE, SKU)),
    (paid(SKU), paid({**SKU, "doc": "Other words."})),
    (paid(SKU, NOTE), paid(SKU, {**NOTE, "name": "remark", "aliases": ["note"]})),
    (one("string"), one("bytes")),
    (one(["null", "string"]), one(["string", "null"])),
    (one(ANY_COLOUR), one(ANY_OF_MORE)),
    (one({"type": "array", "items": PRICE}), one({"type": "array", "items": PRICE})),
]

# Each with the field at fault, and a part of the explanation.
REFUSED = [
    (paid(SKU), paid(SKU, AT), "at", "it is new in v2 and has no default"),
    (paid(SKU, AT), paid(SKU), "at", "it is gone in v2, and readers of v1 have no default"),
    (paid(AT), paid({**AT, "name": "when", "aliases": ["at"]}), "at", "v2 calls it when. The alias helps new"),
    (one("string"), one("long"), "x", "it was string and is long"),
    (one("int"), one("long"), "x", "it was int and is long, and v1 cannot read what v2 wrote"),
    (one("long"), one("int"), "x", "it was long and is int, and v2 cannot read what v1 wrote"),
    (one("string"), one(["null", "string"]), "x", "it was string and is null or string"),
    (one(["null", "string"]), one("string"), "x", "it was null or string and is string"),
    (one(["null", "string"]), one(["null", "long"]), "x", "it was null or string and is null or long"),
    (one({"type": "array", "items": "int"}), one({"type": "array", "items": "string"}), "x[]", "it was int and is"),
    (one({"type": "map", "values": "int"}), one({"type": "map", "values": "string"}), "x{}", "it was int and is"),
    (one("int"), one({"type": "array", "items": "int"}), "x", "it was int and is array of int"),
    (one(PRICE), one(TAXED), "x.tax", "it is new in v2 and has no default"),
    (one({"type": "array", "items": PRICE}), one({"type": "array", "items": TAXED}), "x[].tax", "it is new in v2"),
    (one(["null", PRICE]), one(["null", TAXED]), "x.tax", "it is new in v2"),
    (one(PRICE), one({**PRICE, "name": "Cost"}), "x", "tests.paper.Price is now called tests.paper.Cost"),
    (one(COLOUR), one(MORE_COLOURS), "x", "readers of v1 do not know BLUE, and the enum has no default"),
    (one(MORE_COLOURS), one(COLOUR), "x", "readers of v2 do not know BLUE"),
    (
        one({"type": "fixed", "name": "F", "size": 4}),
        one({"type": "fixed", "name": "F", "size": 5}),
        "x",
        "it was tests.paper.F of 4 bytes and is tests.paper.F of 5",
    ),
    (paid(SKU), record("Settled", SKU), "", "tests.paper.Paid is now called tests.paper.Settled"),
]

AMBIGUOUS = [
    (one("int", default=0), one("int", default=1), "x", "its default was 0 in v1 and is 1 in v2"),
    (paid(NOTE), paid(NOTE, {**NOTE, "name": "remark", "aliases": ["note"]}), "remark", "its alias note is also a"),
]
"""Changes that only our own rules refuse: Avro, and so a registry, accepts them."""
