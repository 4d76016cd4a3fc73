"""`python -m tests.golden`: adds released versions that are not in the archive yet, and never changes a file."""

import json
from io import BytesIO
from pathlib import Path

from fastavro import schemaless_writer

from shared.schemas.contract.event_schemas import ROOT, EventSchema, load_schemas
from shared.schemas.contract.release_lock import locked_checksums
from tests.golden import FOLDER, SUMS, file_of, sum_of, sums
from tests.golden.examples import example


def add(schema: EventSchema, folder: Path) -> str:
    value = example(schema.parsed)
    out = BytesIO()
    schemaless_writer(out, schema.parsed, value, strict=True)
    file = file_of(schema, folder)
    file.parent.mkdir(exist_ok=True)
    with file.open("x") as new:
        json.dump({"written": value, "bytes": out.getvalue().hex()}, new, indent=2, ensure_ascii=False)
        new.write("\n")
    return str(file.relative_to(folder))


def main(folder: Path = FOLDER) -> list[str]:
    frozen, released = sums(folder), locked_checksums(ROOT)
    if lost := [path for path in frozen if not (folder / path).exists()]:
        raise SystemExit(f"Frozen and gone; bring them back out of git: {', '.join(lost)}")
    missing = [s for s in load_schemas().all if f"{s}.avsc" in released and not file_of(s, folder).exists()]
    added = [add(schema, folder) for schema in missing]
    frozen |= {path: sum_of(folder / path) for path in added}
    (folder / SUMS).write_text("".join(f"{frozen[path]}  {path}\n" for path in sorted(frozen)))
    return added


if __name__ == "__main__":
    for path in main():
        print(f"added {path}")  # noqa: T201
