"""The comparison of classes with schemas finds every kind of disagreement."""

from dataclasses import dataclass

import pytest

from services.common.money import Money
from tests.unit.services.agreement import disagreements, undocumented


@dataclass
class Paid:
    order_id: str
    amount: Money


@dataclass
class Noted:
    remark: str | None


RIGHT = [{"name": "order_id", "type": "string"}, {"name": "amount", "type": "tillroll.Money"}]


def test_agreement_is_seen() -> None:
    assert disagreements(Paid, {"fields": RIGHT}) == []


@pytest.mark.parametrize(
    "fields",
    [
        RIGHT[:1],
        RIGHT[::-1],
        [*RIGHT, {"name": "at", "type": "long"}],
        [{"name": "order", "type": "string"}, RIGHT[1]],
        [{"name": "order_id", "type": "long"}, RIGHT[1]],
        [RIGHT[0], {"name": "amount", "type": "tillroll.Line"}],
        [{"name": "order_id", "type": ["null", "string"]}, RIGHT[1]],
    ],
)
def test_a_disagreement_is_seen(fields: list[dict[str, object]]) -> None:
    assert len(disagreements(Paid, {"fields": fields})) == 1


def test_an_optional_field_is_nullable_in_the_schema() -> None:
    assert disagreements(Noted, {"fields": [{"name": "remark", "type": ["null", "string"]}]}) == []
    assert len(disagreements(Noted, {"fields": [{"name": "remark", "type": "string"}]})) == 1


def test_a_missing_doc_is_seen() -> None:
    schema = {
        "name": "Paid",
        "doc": "Money came.",
        "fields": [{"name": "order_id", "doc": " "}, {"name": "amount"}],
    }
    assert undocumented(schema) == ["order_id", "amount"]
