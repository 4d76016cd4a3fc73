"""Bytes of every event version ever released, kept as they were first written.

`<folder>/<Record>.v<N>.json` has the value and its Avro bytes, both frozen by SHA256SUMS. `today.json` says how it is
read now, where that is not as it was written; it is written by hand, when an event evolves.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.schemas.contract.event_schemas import EventSchema, Schemas

FOLDER = Path(__file__).parent
SUMS = "SHA256SUMS"
TODAY = "today.json"


@dataclass(frozen=True)
class Golden:
    schema: EventSchema
    written: dict[str, Any]
    body: bytes
    """Bare Avro: the schema id in front of it is each registry's own."""
    record: str
    """Full name of the record as which it is read today."""
    value: dict[str, Any]

    def __str__(self) -> str:
        return str(self.schema)


def archive(schemas: Schemas, folder: Path = FOLDER) -> list[Golden]:
    today = json.loads((folder / TODAY).read_text())
    found = []
    for schema in schemas.all:
        file = file_of(schema, folder)
        if file.exists():
            kept = json.loads(file.read_text())
            now = today.get(str(schema), {"record": schema.record, "value": kept["written"]})
            body = bytes.fromhex(kept["bytes"])
            found.append(Golden(schema, kept["written"], body, now["record"], now["value"]))
    return found


def file_of(schema: EventSchema, folder: Path = FOLDER) -> Path:
    return folder / f"{schema}.json"


def sums(folder: Path = FOLDER) -> dict[str, str]:
    """Checksums of the frozen files, by path."""
    file = folder / SUMS
    lines = file.read_text().splitlines() if file.exists() else []
    return {path: checksum for checksum, path in (line.split("  ", 1) for line in lines)}


def sum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
