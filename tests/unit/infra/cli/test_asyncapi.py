"""The AsyncAPI document is up to date and complete."""

from pathlib import Path
from typing import Any

from infra.cli.reference.asyncapi import document, page
from shared.messaging.topics import declared_topics
from shared.schemas.contract.event_schemas import load_schemas


def test_the_asyncapi_document_is_up_to_date() -> None:
    written = (Path(__file__).parents[4] / "docs" / "asyncapi.json").read_text()
    assert written == page(), "Run: make docs"


def test_every_topic_and_event_is_in_the_asyncapi_document_and_every_reference_resolves() -> None:
    described = document()
    assert set(described["channels"]) == {topic.name for topic in declared_topics() if not topic.name.endswith(".dlq")}
    assert set(described["components"]["messages"]) == {schema.record for schema in load_schemas().all}
    for reference in _references(described):
        found: Any = described
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [r for value in node.values() for r in _references(value)]
    return [r for value in node for r in _references(value)] if isinstance(node, list) else []
