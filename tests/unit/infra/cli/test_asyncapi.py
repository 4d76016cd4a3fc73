from pathlib import Path
from typing import Any

from infra.cli.asyncapi import document, page
from shared.schemas import load_schemas
from shared.topics import declared_topics


def test_the_document_is_what_schemas_and_topics_say_today() -> None:
    written = (Path(__file__).parents[2] / "docs" / "asyncapi.json").read_text()
    assert written == page(), "Run: make docs"


def test_every_topic_and_every_event_is_in_it_and_every_reference_leads_somewhere() -> None:
    told = document()
    assert set(told["channels"]) == {topic.name for topic in declared_topics() if not topic.name.endswith(".dlq")}
    assert set(told["components"]["messages"]) == {schema.record for schema in load_schemas().all}
    for reference in _references(told):
        found: Any = told
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [r for value in node.values() for r in _references(value)]
    return [r for value in node for r in _references(value)] if isinstance(node, list) else []
