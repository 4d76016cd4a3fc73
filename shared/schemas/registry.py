"""The HTTP client of the schema registry (Confluent API)."""

from types import TracebackType
from typing import Any, Self

import httpx

from shared.errors import OperatorError
from shared.schemas.contract.event_schemas import EventSchema
from shared.settings import Settings

JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
COMPATIBILITY = "FULL_TRANSITIVE"
HOW_TO_CHANGE = "See docs/adr/0010 for what may change in a released schema, and how."


class RegistryUnavailable(OperatorError):
    """The registry does not answer, or answers with an error of its own."""


class SchemaRefused(OperatorError):
    """The registry refuses this schema: it is incompatible with registered versions, or not a schema at all."""


class Registry:
    """A connection to the registry. Open it with `async with`, which closes its HTTP client."""

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
        """Returns the id of exactly this schema, or None if it is not registered."""
        answer = await self._call("POST", f"/subjects/{schema.subject}", {"schema": schema.text}, missing_ok=True)
        return int(answer["id"]) if answer else None

    async def register(self, schema: EventSchema) -> int:
        answer = await self._call("POST", f"/subjects/{schema.subject}/versions", {"schema": schema.text})
        return int(answer["id"])

    async def accepts(self, schema: EventSchema) -> bool:
        """Tells whether the schema is compatible with all versions that are registered under its subject."""
        path = f"/compatibility/subjects/{schema.subject}/versions"
        answer = await self._call("POST", path, {"schema": schema.text}, missing_ok=True)
        return answer is None or bool(answer["is_compatible"])

    async def versions(self, subject: str) -> dict[int, str]:
        """Returns the text of each registered version by its number."""
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
