"""Schema files are loaded, and a faulty one is named with its fault and the remedy."""

from pathlib import Path
from typing import Any

import pytest

from shared.errors import OperatorError
from shared.schemas.contract.event_schemas import Schemas, load_schemas
from tests.unit.shared.schemas.contract.schema_folder import AT, NOTE, SKU, folder, record

CUT = record("Cut", SKU)
SHEET = record("Sheet", SKU, namespace="tests")
SHEET_2 = record("Sheet", SKU, NOTE, namespace="tests")


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "doc": "What it means."}


def load(root: Path, files: dict[str, Any]) -> Schemas:
    return load_schemas(folder(root / "schemas", files), {})


def refused(root: Path, files: dict[str, Any]) -> OperatorError:
    with pytest.raises(OperatorError) as error:
        load(root, files)
    assert error.value.hint
    return error.value


def test_every_version_is_found_with_its_topic_and_subject(tmp_path: Path) -> None:
    schemas = load(tmp_path, {"paper/Cut.v1": CUT, "paper/Cut.v2": record("Cut", SKU, NOTE)})
    assert [(str(s), s.topic, s.subject) for s in schemas.all] == [
        ("paper/Cut.v1", "paper.events", "paper.events-tests.paper.Cut"),
        ("paper/Cut.v2", "paper.events", "paper.events-tests.paper.Cut"),
    ]
    assert schemas.newest("tests.paper.Cut").version == 2


def test_the_tenth_version_is_newer_than_the_ninth(tmp_path: Path) -> None:
    schemas = load(tmp_path, {f"paper/Cut.v{n}": CUT for n in range(1, 11)})
    assert [s.version for s in schemas.records["tests.paper.Cut"]] == list(range(1, 11))


def test_a_shared_type_is_inlined_once_and_named_after_that(tmp_path: Path) -> None:
    cut = record("Cut", field("front", "tests.Sheet"), field("rest", {"type": "array", "items": "tests.Sheet"}))
    [schema] = load(tmp_path, {"shared/Sheet.v1": SHEET, "paper/Cut.v1": cut}).all
    front, rest = schema.definition["fields"]
    assert front["type"] == SHEET
    assert rest["type"] == {"type": "array", "items": "tests.Sheet"}


def test_a_new_version_of_a_shared_type_does_not_change_events_that_use_the_first(tmp_path: Path) -> None:
    old, new = record("Cut", field("front", "tests.Sheet")), record("Cut", field("front", "tests.Sheet.v2"))
    before = load(tmp_path / "a", {"shared/Sheet.v1": SHEET, "paper/Cut.v1": old}).all
    after = load(
        tmp_path / "b",
        {"shared/Sheet.v1": SHEET, "shared/Sheet.v2": SHEET_2, "paper/Cut.v1": old, "paper/Cut.v2": new},
    ).all
    assert after[0].text == before[0].text
    assert after[1].definition["fields"][0]["type"] == SHEET_2


def test_two_versions_of_a_shared_type_in_one_event_are_refused(tmp_path: Path) -> None:
    both = record("Cut", field("front", "tests.Sheet"), field("back", "tests.Sheet.v2"))
    error = refused(tmp_path, {"shared/Sheet.v1": SHEET, "shared/Sheet.v2": SHEET_2, "paper/Cut.v1": both})
    assert error.message == "schemas/paper/Cut.v1.avsc names two versions of tests.Sheet: 1 and 2."


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"type": "recor', "is not JSON"),
        ("[]", "is not an Avro record"),
        ('"string"', "is not an Avro record"),
        ({"type": "enum", "name": "Cut", "namespace": "tests.paper", "symbols": ["A"]}, "is not an Avro record"),
        ({"type": "record", "name": "Cut", "fields": []}, "is not an Avro record with a namespace"),
        (record("Cut", {"name": "sku"}), "is not valid Avro"),
        (record("Cut", field("sku", {"type": "array"})), "is not valid Avro"),
        (record("Cut", {**SKU, "default": 7}), "is not valid Avro"),
        (record("Cut", field("a", SHEET), field("b", SHEET)), "is not valid Avro"),
        (record("Cut", field("sku", "text")), "names a type that does not exist: tests.paper.text"),
        (record("Cut", field("price", "tillroll.Mony")), "names a type that does not exist: tillroll.Mony"),
        (record("Sliced", SKU), "defines Sliced, not Cut"),
        (record("Cut", SKU, namespace="tests.ink"), "no topic carries the namespace tests.ink"),
    ],
)
def test_a_faulty_schema_file_is_named_with_its_fault(tmp_path: Path, content: Any, says: str) -> None:
    error = refused(tmp_path, {"paper/Cut.v1": content})
    assert error.message.startswith("schemas/paper/Cut.v1.avsc")
    assert says in error.message


def test_a_faulty_shared_type_is_named_even_if_nothing_uses_it(tmp_path: Path) -> None:
    broken = record("Sheet", field("sku", "text"), namespace="tests")
    assert refused(tmp_path, {"shared/Sheet.v1": broken}).message.startswith(
        "schemas/shared/Sheet.v1.avsc names a type"
    )


def test_an_unknown_type_is_answered_with_the_existing_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, {"shared/Sheet.v1": SHEET, "paper/Cut.v1": record("Cut", field("a", "tests.Shet"))})
    assert "tests.Sheet.v1" in error.hint


@pytest.mark.parametrize("name", ["Cut", "Cut.1", "Cut.v0", "Cut.v01", "Cut.v1.bak", "Cut-v1", "1Cut.v1"])
def test_a_schema_file_whose_name_has_no_version_is_refused(tmp_path: Path, name: str) -> None:
    assert (
        f"schemas/paper/{name}.avsc is not named like a schema file"
        in refused(tmp_path, {f"paper/{name}": CUT}).message
    )


def test_a_version_number_that_exists_twice_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, {"paper/Cut.v1": CUT, "scissors/Cut.v1": record("Cut", SKU, AT)})
    assert error.message == (
        "Version 1 of tests.paper.Cut exists twice: schemas/paper/Cut.v1.avsc and schemas/scissors/Cut.v1.avsc."
    )


@pytest.mark.parametrize(("there", "missing"), [([2], 1), ([1, 3], 2), ([1, 2, 4], 3)])
def test_a_missing_version_number_is_refused(tmp_path: Path, there: list[int], missing: int) -> None:
    error = refused(tmp_path, {f"paper/Cut.v{version}": CUT for version in there})
    assert error.message.startswith(f"Version {missing} of tests.paper.Cut is missing")
