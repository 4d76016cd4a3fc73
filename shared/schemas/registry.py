"""The schema registry (Confluent API), and what a service remembers of it in its own database."""

import json
from collections.abc import Collection
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx
from fastavro.schema import SchemaParseException

from shared.codec import Codec, Undecodable, schema_id_of
from shared.compatibility import between, side
from shared.database import Pool
from shared.errors import OperatorError
from shared.schemas import EventSchema, Schemas
from shared.settings import Settings

JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
COMPATIBILITY = "FULL_TRANSITIVE"
HOW_TO_CHANGE = "What may change in a released schema, and how: docs/adr/0010."


class RegistryUnavailable(OperatorError):
    """No answer, or one that is not about the question."""


class SchemaRefused(OperatorError):
    """The registry does not take this schema: not compatible with those it has, or not a schema at all."""


class Registry:
    def __init__(self, settings: Settings) -> None:
        self._url = settings.registry_url
        auth = (
            httpx.BasicAuth(settings.registry_username, settings.registry_password.get_secret_value())
            if settings.registry_username
            else None
        )
        self._http = httpx.AsyncClient(base_url=self._url, auth=auth, headers=JSON, timeout=5)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def lookup(self, schema: EventSchema) -> int | None:
        """The id under which the registry knows exactly this schema, if it does."""
        answer = await self._call("POST", f"/subjects/{schema.subject}", {"schema": schema.text}, missing_ok=True)
        return int(answer["id"]) if answer else None

    async def register(self, schema: EventSchema) -> int:
        answer = await self._call("POST", f"/subjects/{schema.subject}/versions", {"schema": schema.text})
        return int(answer["id"])

    async def accepts(self, schema: EventSchema) -> bool:
        """Whether it would register the schema, beside all that it has under the subject."""
        path = f"/compatibility/subjects/{schema.subject}/versions"
        answer = await self._call("POST", path, {"schema": schema.text}, missing_ok=True)
        return answer is None or bool(answer["is_compatible"])

    async def versions(self, subject: str) -> dict[int, str]:
        """The text of each version that it has, by its number there."""
        numbers = await self._call("GET", f"/subjects/{subject}/versions", missing_ok=True)
        return {
            number: (await self._call("GET", f"/subjects/{subject}/versions/{number}"))["schema"]
            for number in numbers or ()
        }

    async def compatibility(self) -> str:
        return str((await self._call("GET", "/config"))["compatibilityLevel"])

    async def require_compatibility(self) -> None:
        await self._call("PUT", "/config", {"compatibility": COMPATIBILITY})

    async def schema_text(self, schema_id: int) -> str | None:
        answer = await self._call("GET", f"/schemas/ids/{schema_id}", missing_ok=True)
        return str(answer["schema"]) if answer else None

    async def _call(self, method: str, path: str, body: Any = None, *, missing_ok: bool = False) -> Any:
        try:
            answer = await self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise RegistryUnavailable(
                f"The schema registry at {self._url} does not answer: {error!r}",
                "Start it with: till up. Or set TILL_REGISTRY_URL.",
            ) from error
        if answer.status_code == httpx.codes.NOT_FOUND and missing_ok:
            return None
        if answer.status_code in (httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY):
            raise SchemaRefused(f"The schema registry refuses {path}: {_reason(answer)}", HOW_TO_CHANGE)
        if answer.is_error:
            raise RegistryUnavailable(f"The schema registry answered {answer.status_code}: {_reason(answer)}")
        return answer.json()


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError):
        return answer.text[:200]


class SchemaMemory:
    """Fills the codec: from the database where it can, from the registry where it must."""

    def __init__(self, pool: Pool, registry: Registry, schemas: Schemas, codec: Codec) -> None:
        self._pool = pool
        self._registry = registry
        self._schemas = schemas
        self._codec = codec
        self._event_types: dict[str, type] = {}

    async def bind(self, topic: str, event_types: tuple[type, ...]) -> None:
        """Find the id of every event we write. Without it nothing can be produced, so the service does not start."""
        newest = {schema.type: schema for schema in self._schemas.of_topic(topic)}
        for event_type in event_types:
            schema = newest.get(event_type.__name__)
            if schema is None:
                raise OperatorError(
                    f"{event_type.__name__} has no schema for {topic}.", "Write its .avsc; see schemas/ for others."
                )
            self._event_types[schema.record] = event_type
            schema_id = await self._id_of(schema)
            if schema_id is None:
                raise OperatorError(
                    f"The registry does not know {schema.record} version {schema.version} ({schema.subject}).",
                    "Register it with: till schemas push",
                )
            self._codec.bind(event_type, schema, schema_id)
        # Our store may hold any version that was ever written, of retired events too, and folds without asking.
        await self.follow([topic])

    async def follow(self, topics: Collection[str]) -> None:
        """Learn all that may come in these topics. When it comes for the first time, the registry may be down."""
        known = {(row[0], row[1]) for row in await self._pool.fetch("SELECT subject, schema_text FROM schemas")}
        with suppress(RegistryUnavailable):  # what was ever read here is remembered
            for schema in self._schemas.all:
                if schema.topic in topics and (schema.subject, schema.text) not in known:
                    await self._id_of(schema)
        for row in await self._pool.fetch("SELECT id, schema_text FROM schemas"):
            self._learn(row["id"], row["schema_text"])

    async def decode(self, value: bytes) -> Any:
        """As the codec does, and learns a schema id that is new here."""
        if not self._codec.knows(schema_id := schema_id_of(value)):
            text = await self._registry.schema_text(schema_id)
            if text is None:
                raise Undecodable(f"the registry knows no schema with id {schema_id}")
            try:
                record = self._learn(schema_id, text)
            except (ValueError, SchemaParseException) as error:
                raise Undecodable(f"schema id {schema_id} cannot be used: {error}") from error
            await self._remember(schema_id, record, text)
        return self._codec.decode(value)

    def type_of(self, value: bytes) -> str:
        """Of what `decode` has made of it; the header names the type as which it was written."""
        return self._codec.type_of(value)

    async def _id_of(self, schema: EventSchema) -> int | None:
        known = await self._pool.fetchval(
            "SELECT id FROM schemas WHERE subject = $1 AND schema_text = $2", schema.subject, schema.text
        )
        if known is not None:
            return int(known)
        schema_id = await self._registry.lookup(schema)
        if schema_id is not None:
            await self._remember(schema_id, schema.subject, schema.text)
        return schema_id

    async def _remember(self, schema_id: int, subject: str, text: str) -> None:
        await self._pool.execute(
            "INSERT INTO schemas (id, subject, schema_text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            schema_id,
            subject,
            text,
        )

    def _learn(self, schema_id: int, text: str) -> str:
        reading = self._schemas.reading(text)
        event_type = self._event_types.get(reading.record)
        self._codec.learn(schema_id, reading.writer, reading.record, reading.reader, event_type, reading.upcast)
        written_as: str = reading.writer["name"]
        return written_as


async def push(registry: Registry, schemas: Schemas) -> dict[str, int]:
    """Register every schema, oldest version first, under the strictest compatibility."""
    await registry.require_compatibility()
    return {
        f"{schema.record}.v{schema.version}": await _register(registry, schema)
        for schema in sorted(schemas.all, key=lambda s: (s.record, s.version))
    }


async def _register(registry: Registry, schema: EventSchema) -> int:
    try:
        return await registry.lookup(schema) or await registry.register(schema)
    except SchemaRefused as refusal:
        reasons = await refusals(registry, schema)
        if not reasons:
            raise
        said = "".join(f"\n    {reason}" for reason in reasons)
        raise SchemaRefused(f"The schema registry refuses {schema}:{said}", HOW_TO_CHANGE) from refusal


async def refusals(registry: Registry, schema: EventSchema) -> list[str]:
    """In words, what is between this schema and those that the registry has under its subject."""
    registered = await registry.versions(schema.subject)
    ours = side(f"v{schema.version}", schema.definition)
    return [
        f"not compatible with version {number} in the registry: {finding}"
        for number, text in registered.items()
        for finding in between(side(f"that version {number}", json.loads(text)), ours)
    ]
