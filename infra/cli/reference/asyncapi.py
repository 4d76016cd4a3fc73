"""Describes the topics and their messages as an AsyncAPI 3 document: `python -m infra.cli.reference.asyncapi`."""

from typing import Any

import click
import orjson

from shared.envelope import Context, Recorded, cloud_event_headers, now
from shared.messaging.topics import declared_topics
from shared.schemas.contract.event_schemas import EventSchema, Schemas, load_schemas


def document() -> dict[str, Any]:
    schemas = load_schemas()
    topics = [topic for topic in declared_topics() if not topic.name.endswith(".dlq")]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Till Roll",
            "version": "1",
            "description": "Every fact of the shop, as Avro in the Confluent wire format, keyed by its stream.",
        },
        "channels": {topic.name: _channel(topic.name, topic.about, schemas) for topic in topics},
        "operations": {
            f"receive.{topic.name}": {"action": "receive", "channel": {"$ref": f"#/channels/{topic.name}"}}
            for topic in topics
        },
        "components": {
            "messages": {schema.record: _message(schema) for schema in _newest(schemas)},
            "messageTraits": {"cloudEvent": {"headers": _headers()}},
        },
    }


def _newest(schemas: Schemas) -> list[EventSchema]:
    return sorted({s.record: schemas.newest(s.record) for s in schemas.all}.values(), key=lambda s: s.record)


def _channel(topic: str, about: str, schemas: Schemas) -> dict[str, Any]:
    carried = [schema for schema in _newest(schemas) if schema.topic == topic]
    return {
        "address": topic,
        "description": about,
        "messages": {s.type: {"$ref": f"#/components/messages/{s.record}"} for s in carried},
        "bindings": {"kafka": {"bindingVersion": "0.5.0"}},
    }


def _message(schema: EventSchema) -> dict[str, Any]:
    return {
        "name": schema.record,
        "summary": schema.definition["doc"],
        "contentType": "application/vnd.apache.avro",
        "traits": [{"$ref": "#/components/messageTraits/cloudEvent"}],
        "payload": {"schemaFormat": "application/vnd.apache.avro;version=1.9.0", "schema": schema.definition},
    }


def _headers() -> dict[str, Any]:
    me = Context("")
    event = Recorded("", 1, "", "", now(), me.correlation_id, "", "", "", b"")
    names = [name for name, _ in cloud_event_headers(event, "")]
    return {"type": "object", "required": names, "properties": {name: {"type": "string"} for name in names}}


def page() -> str:
    return orjson.dumps(document(), option=orjson.OPT_INDENT_2).decode() + "\n"


if __name__ == "__main__":
    click.echo(page(), nl=False)
