"""Compatible and incompatible changes of a schema are told apart and explained. Apache's checker is the oracle."""

import json
from typing import Any

import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse as avro_parse
from hypothesis import given
from hypothesis import strategies as st

from shared.schemas.contract.compatibility import Finding, Side, incompatibilities, transitive_incompatibilities
from tests.unit.shared.schemas.contract.schema_folder import AT, NOTE, SKU
from tests.unit.shared.schemas.contract.schema_pairs import ALLOWED, AMBIGUOUS, REFUSED, paid


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[Finding]:
    return incompatibilities(Side.parse("v1", old), Side.parse("v2", new))


@pytest.mark.parametrize(("old", "new"), ALLOWED)
def test_a_change_that_both_versions_can_read_is_allowed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compare(old, new) == []


@pytest.mark.parametrize(("old", "new", "field", "why"), REFUSED + AMBIGUOUS)
def test_a_change_that_one_version_cannot_read_is_explained(
    old: dict[str, Any], new: dict[str, Any], field: str, why: str
) -> None:
    [finding] = compare(old, new)
    assert finding.field == field
    assert why in finding.why
    assert finding.instead


def test_an_alias_that_is_also_a_field_of_the_older_version_is_ambiguous() -> None:
    """v2 wrote both names while readers moved on; v3 drops the old one and calls it an alias."""
    remark = {**NOTE, "name": "remark"}
    [finding] = incompatibilities(
        Side.parse("v2", paid(NOTE, remark)), Side.parse("v3", paid({**remark, "aliases": ["note"]}))
    )
    assert "its alias note is also a field next to it in v2" in finding.why


def test_every_version_is_compared_with_all_before_it_not_only_the_last() -> None:
    """Each step is compatible: the note goes, and then comes back as a number. Only version 1 conflicts with that."""
    versions = [paid(SKU, {**NOTE, "default": ""}), paid(SKU), paid(SKU, {**NOTE, "type": "long", "default": 0})]
    sides = [Side.parse(f"v{n}", version) for n, version in enumerate(versions, 1)]
    assert incompatibilities(sides[0], sides[1]) == []
    assert incompatibilities(sides[1], sides[2]) == []
    assert {(newer, older) for newer, older, _ in transitive_incompatibilities(sides)} == {("v3", "v1")}


def test_a_recursive_type_is_compared_once() -> None:
    def tree(*more: dict[str, Any]) -> dict[str, Any]:
        return paid({"name": "parts", "type": {"type": "array", "items": "tests.paper.Paid"}}, *more)

    assert compare(tree(), tree(NOTE)) == []
    assert [finding.field for finding in compare(tree(), tree(AT))] == ["at"]


NAMES = ["a", "b", "c", "d"]
DEFAULTS: dict[str, Any] = {
    "int": 0,
    "long": 0,
    "float": 0.5,
    "double": 0.5,
    "string": "",
    "bytes": "",
    "boolean": True,
}
plain = st.sampled_from(sorted(DEFAULTS))
optionally = st.booleans()
colours = st.lists(st.sampled_from(["RED", "BLUE", "GREEN"]), min_size=1, unique=True)


@st.composite
def fields(draw: st.DrawFn, name: str) -> dict[str, Any]:
    match draw(st.sampled_from(["plain", "optional", "array", "map", "enum", "record"])):
        case "plain":
            kind: Any = draw(plain)
            default = DEFAULTS[kind]
        case "optional":
            kind, default = ["null", draw(plain)], None
        case "array":
            kind, default = {"type": "array", "items": draw(plain)}, []
        case "map":
            kind, default = {"type": "map", "values": draw(plain)}, {}
        case "enum":
            kind, default = {"type": "enum", "name": f"E_{name}", "symbols": draw(colours)}, None
        case _:
            inner = {"name": "x", "type": draw(plain)}
            kind, default = {"type": "record", "name": f"R_{name}", "fields": [inner]}, None
    field = {"name": name, "type": kind}
    named = isinstance(kind, dict) and "name" in kind
    return field if named or draw(optionally) else {**field, "default": default}


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return {"type": "record", "name": "Paid", "namespace": "tests", "fields": [draw(fields(name)) for name in names]}


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two versions of a record; in the newer one, a field may have been renamed."""
    old, new = draw(schemas()), draw(schemas())
    before, after = [field["name"] for field in old["fields"]], [field["name"] for field in new["fields"]]
    fresh, gone = [name for name in after if name not in before], [name for name in before if name not in after]
    renamed: bool = draw(optionally)
    if renamed and fresh and gone:
        next(field for field in new["fields"] if field["name"] == fresh[0])["aliases"] = [gone[0]]
    return old, new


def can_read(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    result = checker.get_compatibility(avro_parse(json.dumps(reader)), avro_parse(json.dumps(writer)))
    return bool(result.compatibility is SchemaCompatibilityType.compatible)


@given(changes())
def test_apaches_compatibility_checker_gives_the_same_verdict(change: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = change
    default_changed = [finding for finding in compare(old, new) if "its default was" in finding.why]
    disagrees = [finding for finding in compare(old, new) if finding not in default_changed]
    assert (not disagrees) == (can_read(new, old) and can_read(old, new))
