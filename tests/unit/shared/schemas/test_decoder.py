"""The decoder learns a schema from the first source that has it, once, and reads values as today's code has them."""

from dataclasses import dataclass

import pytest

from shared.schemas.codec import MAGIC, PREFIX, Undecodable, UnknownSchema
from shared.schemas.contract.event_schemas import EventSchema, Schemas
from shared.schemas.decoder import Decoder
from tests.unit.shared.schemas.contract.schema_folder import NOTE, SKU, record

pytestmark = pytest.mark.anyio

CUT_1 = EventSchema("paper", "tests.paper.Cut", 1, "paper.events", record("Cut", SKU))
CUT_2 = EventSchema("paper", "tests.paper.Cut", 2, "paper.events", record("Cut", SKU, NOTE))
SCHEMAS = Schemas([CUT_1, CUT_2])


@dataclass(frozen=True)
class Cut:
    sku: str
    note: str


class Source:
    """Schema texts by id, and the ids that were looked up."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts = texts
        self.lookups: list[int] = []

    async def schema_text(self, schema_id: int) -> str | None:
        self.lookups.append(schema_id)
        return self.texts.get(schema_id)


def value(schema_id: int, body: bytes = b"\x06MUG") -> bytes:
    return PREFIX.pack(MAGIC, schema_id) + body


async def test_a_schema_id_is_looked_up_once_in_the_first_source_that_has_it() -> None:
    table, registry = Source({1: CUT_1.text}), Source({1: CUT_1.text, 2: CUT_2.text})
    decoder = Decoder(SCHEMAS, [table, registry])
    for _ in range(2):
        assert await decoder.decode(value(1)) == {"sku": "MUG", "note": ""}
        assert await decoder.decode(value(2, b"\x06MUG\x04hi")) == {"sku": "MUG", "note": "hi"}
    assert (table.lookups, registry.lookups) == ([1, 2], [2])


async def test_records_with_a_class_become_instances_of_it() -> None:
    decoder = Decoder(SCHEMAS, [Source({1: CUT_1.text})], {"tests.paper.Cut": Cut})
    assert await decoder.decode(value(1)) == Cut("MUG", "")
    assert decoder.type_of(value(1)) == "Cut"


async def test_a_value_of_a_replaced_schema_version_is_old() -> None:
    decoder = Decoder(SCHEMAS, [Source({1: CUT_1.text, 2: CUT_2.text})])
    await decoder.decode(value(1))
    await decoder.decode(value(2, b"\x06MUG\x04hi"))
    assert (decoder.is_old(value(1)), decoder.is_old(value(2))) == (True, False)


async def test_a_schema_id_that_no_source_has_is_undecodable() -> None:
    with pytest.raises(Undecodable, match="no schema with id 9"):
        await Decoder(SCHEMAS, [Source({}), Source({})]).decode(value(9))


@pytest.mark.parametrize("text", ['"string"', '{"type": "recor"}', "not JSON"])
async def test_a_schema_that_cannot_be_used_makes_its_values_undecodable(text: str) -> None:
    with pytest.raises(Undecodable, match="schema id 1 cannot be used"):
        await Decoder(SCHEMAS, [Source({1: text})]).decode(value(1))


async def test_decoding_without_waiting_raises_for_an_id_that_was_not_met_before() -> None:
    decoder = Decoder(SCHEMAS, [Source({1: CUT_1.text})])
    with pytest.raises(UnknownSchema):
        decoder.decode_known(value(1))
    await decoder.decode(value(1))
    assert decoder.decode_known(value(1)) == {"sku": "MUG", "note": ""}
