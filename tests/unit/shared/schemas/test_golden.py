"""The golden archive holds every released event version, unchanged, and today's code reads each as intended."""

import json
import shutil
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import pytest

from infra.settings import Settings
from services.shop.services import shop_services
from shared.schemas.codec import MAGIC, PREFIX, Codec, Undecodable
from shared.schemas.contract.event_schemas import ROOT, load_schemas
from shared.schemas.contract.release_lock import locked_checksums
from tests.golden import FOLDER, Golden, archive, sum_of, sums
from tests.golden.__main__ import main as add_missing

SCHEMAS = load_schemas()
ARCHIVE = archive(SCHEMAS)
every_one = pytest.mark.parametrize("golden", ARCHIVE, ids=str)


def event_classes() -> dict[tuple[str, str], type]:
    """Returns the class that a service uses for a record, by topic and type."""
    return {
        (topic, kind.__name__): kind
        for service in shop_services(Settings.load())
        for topic, kinds in [(service.decider.topic, service.decider.events)]
        + [(topic, (kind,)) for topic, kind in service.documents.items()]
        for kind in kinds
    }


CLASSES = event_classes()


def decode(golden: Golden, body: bytes) -> Any:
    plan = SCHEMAS.plan_reading(golden.schema.text)
    kind = CLASSES.get((golden.schema.topic, plan.record.rpartition(".")[2]))
    codec = Codec()
    codec.learn(1, plan, kind)
    return codec.decode(PREFIX.pack(MAGIC, 1) + body)


def as_json(event: Any) -> Any:
    return json.loads(json.dumps(event if isinstance(event, dict) else asdict(event)))


@every_one
def test_an_event_of_any_released_version_is_read_as_intended_today(golden: Golden) -> None:
    event = decode(golden, golden.body)
    assert as_json(event) == golden.value, f"If {golden} is meant to be read so now, say so in tests/golden/today.json"
    if not isinstance(event, dict):
        assert type(event).__name__ == golden.record.rpartition(".")[2]


def test_all_events_of_services_are_read_into_their_classes() -> None:
    assert {"CartOpened", "ItemRemoved", "StockCounted", "Product"} <= {name for _, name in CLASSES}


@every_one
def test_apaches_library_reads_the_value_that_was_written(golden: Golden) -> None:
    """Reads with Apache's Python library and the schema that wrote the bytes, without any code of ours."""
    reader = avro.io.DatumReader(avro.schema.parse(golden.schema.text))
    body = BytesIO(golden.body)
    assert reader.read(avro.io.BinaryDecoder(body)) == golden.written
    assert body.read() == b""


@every_one
def test_an_event_that_is_cut_short_anywhere_is_refused(golden: Golden) -> None:
    for length in range(len(golden.body)):
        with pytest.raises(Undecodable, match="the bytes are cut short"):
            decode(golden, golden.body[:length])


@every_one
def test_an_event_with_a_byte_after_it_is_refused(golden: Golden) -> None:
    with pytest.raises(Undecodable, match="1 bytes are left over"):
        decode(golden, golden.body + b"\0")


def test_a_union_that_is_out_of_range_is_refused_in_words() -> None:
    counted = next(golden for golden in ARCHIVE if str(golden) == "catalog/StockCounted.v1")
    branch = counted.body.index(b"\x02\x44")  # the second branch, then 34
    with pytest.raises(Undecodable, match=r"not a tillroll\.stock\.StockCounted: a union or an enum is out of range"):
        decode(counted, counted.body[:branch] + b"\x0a\x44")


def test_every_released_version_is_in_the_golden_archive() -> None:
    released = {path.removesuffix(".avsc") for path in locked_checksums(ROOT) if not path.startswith("shared/")}
    assert {str(golden) for golden in ARCHIVE} == released, "Add what is missing with: python -m tests.golden"


def unfrozen(folder: Path) -> list[str]:
    """Returns the files that differ from their checksum, have none, or are missing."""
    files = {str(file.relative_to(folder)): sum_of(file) for file in folder.glob("*/*.json")}
    frozen = sums(folder)
    return [path for path in files.keys() | frozen.keys() if files.get(path) != frozen.get(path)]


def test_the_golden_archive_matches_its_checksums() -> None:
    assert unfrozen(FOLDER) == []


def test_a_change_in_the_golden_archive_is_detected(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(FOLDER, tmp_path / "golden"))
    kept = copy / "cart" / "ItemAdded.v1.json"
    kept.write_text(kept.read_text().replace("MUG-350", "MUG-351"))
    (copy / "cart" / "CartOpened.v1.json").unlink()
    (copy / "cart" / "Invented.v1.json").write_text("{}")
    assert sorted(unfrozen(copy)) == ["cart/CartOpened.v1.json", "cart/Invented.v1.json", "cart/ItemAdded.v1.json"]


def test_adding_to_the_golden_archive_never_changes_an_existing_file(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(FOLDER, tmp_path / "golden"))
    kept, missing = copy / "cart" / "ItemAdded.v1.json", copy / "cart" / "CartOpened.v1.json"
    kept.write_text("changed")
    missing.unlink()
    lines = (copy / "SHA256SUMS").read_text().splitlines(keepends=True)
    (copy / "SHA256SUMS").write_text("".join(line for line in lines if "CartOpened" not in line))
    assert add_missing(copy) == ["cart/CartOpened.v1.json"]
    assert kept.read_text() == "changed"
    assert sums(copy) == sums(FOLDER)


def test_a_lost_golden_file_is_reported_and_not_recreated(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(FOLDER, tmp_path / "golden"))
    (copy / "cart" / "CartOpened.v1.json").unlink()
    with pytest.raises(SystemExit, match=r"cart/CartOpened\.v1\.json"):
        add_missing(copy)
