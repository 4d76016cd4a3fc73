"""The shop's contract has no problem, and every kind of problem is found. `till schemas check --offline` runs this."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.upcasters import Upcaster
from shared.schemas.contract.checks import SchemaProblem, find_problems
from shared.schemas.contract.event_schemas import ROOT
from shared.schemas.contract.release_lock import LOCK, changed_files, locked_checksums, release, unreleased_files
from shared.schemas.contract.upcasting import Upcasters
from tests.unit.shared.schemas.contract.schema_folder import AT, NOTE, SKU, folder, record

CUT = record("Cut", SKU)


def check(root: Path, files: dict[str, Any], upcasters: Upcasters | None = None) -> list[SchemaProblem]:
    return find_problems(folder(root / "schemas", files), upcasters or {})


def test_the_schemas_of_the_shop_have_no_problem() -> None:
    assert find_problems() == []


def test_an_incompatible_version_is_a_problem_with_the_newer_file(tmp_path: Path) -> None:
    [problem] = check(tmp_path, {"paper/Cut.v1": CUT, "paper/Cut.v2": record("Cut", SKU, AT)})
    assert problem.where == "paper/Cut.v2"
    assert problem.what.startswith("not compatible with v1: field at: it is new in v2 and has no default")
    assert problem.instead.startswith("Give it a default")


def test_a_version_that_is_incompatible_with_the_oldest_only_is_a_problem(tmp_path: Path) -> None:
    files = {
        "paper/Cut.v1": record("Cut", SKU, NOTE),
        "paper/Cut.v2": record("Cut", SKU),
        "paper/Cut.v3": record("Cut", SKU, {**NOTE, "type": "long", "default": 0}),
    }
    found = check(tmp_path, files)
    assert found
    assert all(p.where == "paper/Cut.v3" and "not compatible with v1" in p.what for p in found)


def test_a_schema_file_that_cannot_be_loaded_is_a_problem(tmp_path: Path) -> None:
    [problem] = check(tmp_path, {"paper/Cut.v1": "{"})
    assert "schemas/paper/Cut.v1.avsc is not JSON" in problem.what


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ([{"name": "sku", "type": "string"}], "field sku: it has no doc."),
        ([{**SKU, "doc": " "}], "field sku: it has no doc."),
        ([{**SKU, "name": "s-k-u"}], "field s-k-u: not a valid Avro name."),
        ([SKU, SKU], "field sku: it exists twice."),
        ([{**SKU, "type": ["string", "null"], "default": None}], "field sku: its default None is not of the union's"),
        ([{**SKU, "type": ["null", "string"], "default": ""}], "field sku: its default '' is not of the union's first"),
        ([{**SKU, "type": {**record("Sheet", SKU), "doc": ""}}], "tests.paper.Sheet has no doc."),
    ],
)
def test_a_definition_that_other_avro_readers_reject_is_a_problem(
    tmp_path: Path, fields: list[dict[str, Any]], what: str
) -> None:
    [problem] = check(tmp_path, {"paper/Cut.v1": record("Cut", *fields)})
    assert problem.where == "paper/Cut.v1"
    assert problem.what.startswith(what)


def nothing(old: Any) -> dict[str, Any]:
    return dict(old)


@pytest.mark.parametrize(
    ("upcasters", "what"),
    [
        ({"tests.paper.Cut": Upcaster("tests.paper.Slice", nothing)}, "tests.paper.Slice has no schema"),
        ({"tests.paper.Kut": Upcaster("tests.paper.Cut", nothing)}, "tests.paper.Kut has no schema"),
        ({"tests.paper.Cut": Upcaster("tests.glue.Stuck", nothing)}, "in paper.events, and tests.glue.Stuck in glue.e"),
        ({"tests.paper.Cut": Upcaster("tests.paper.Cut", nothing)}, "form a cycle: tests.paper.Cut -> tests.paper.Cut"),
    ],
)
def test_an_upcaster_to_or_from_an_unknown_record_is_a_problem(tmp_path: Path, upcasters: Upcasters, what: str) -> None:
    stuck = record("Stuck", SKU, namespace="tests.glue")
    [problem] = check(tmp_path, {"paper/Cut.v1": CUT, "glue/Stuck.v1": stuck}, upcasters)
    assert what in problem.what


def copy_of_ours(root: Path) -> Path:
    return Path(shutil.copytree(str(ROOT), root / "schemas"))


def test_every_schema_of_the_project_is_released() -> None:
    assert unreleased_files(ROOT) == [], "Lock them with: till schemas release"


def test_no_released_schema_file_has_changed() -> None:
    assert changed_files(ROOT) == []
    assert "cart/ItemAdded.v1.avsc" in locked_checksums(ROOT)


def add_a_space(file: Path) -> None:
    file.write_text(file.read_text() + " ")


@pytest.mark.parametrize(
    ("file", "change", "what"),
    [
        ("cart/ItemAdded.v1.avsc", add_a_space, "it was changed after its release"),
        ("shared/Money.v1.avsc", add_a_space, "it was changed after its release"),
        ("cart/ItemRemoved.v3.avsc", Path.unlink, "it was deleted after its release"),
    ],
)
def test_a_released_schema_file_that_changes_is_a_problem(
    tmp_path: Path, file: str, change: Callable[[Path], None], what: str
) -> None:
    root = copy_of_ours(tmp_path)
    assert find_problems(root) == []
    change(root / file)
    [problem] = find_problems(root)
    assert problem.where == file.removesuffix(".avsc")
    assert problem.what.startswith(what)


def test_a_release_locks_new_schema_files_and_changes_no_other_checksum(tmp_path: Path) -> None:
    root = folder(tmp_path, {"paper/Cut.v1": CUT, "glue/Stick.v1": record("Stick", SKU)})
    assert release(root, ["paper"]) == ["paper/Cut.v1.avsc"]
    first = (root / LOCK).read_text()
    assert unreleased_files(root) == ["glue/Stick.v1.avsc"]
    add_a_space(root / "paper/Cut.v1.avsc")
    assert release(root) == ["glue/Stick.v1.avsc"]
    assert first in (root / LOCK).read_text()
    assert changed_files(root) == ["paper/Cut.v1.avsc"]
