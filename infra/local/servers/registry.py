"""The schema registry: Apicurio with the Confluent API. Its schemas are in the local PostgreSQL."""

from functools import partial

import httpx

from infra.jars.bundles import registry_home
from infra.local.servers import postgres
from infra.local.servers.jvm import Program, program
from infra.local.servers.server import Launch, NotReady, Server
from infra.settings import Settings
from shared.schemas.registry import COMPATIBILITY
from shared.settings import HOST

NAME = "registry"
READY_SUBJECT = "_till.ready"
READY_SCHEMA = '{"type":"string"}'


def server(settings: Settings) -> Server:
    return Server(
        name=NAME,
        address=settings.registry_url,
        ports={"TILL_REGISTRY_PORT": settings.registry_port},
        prepare=partial(_prepare, settings),
        ready=partial(_ready, settings),
        depends_on=(postgres.NAME,),
    )


async def java_program(settings: Settings) -> Program:
    [runner] = registry_home(settings).glob("apicurio-registry-app-*-runner.jar")
    return await program(settings, NAME, [runner])


async def _prepare(settings: Settings) -> Launch:
    java = await java_program(settings)
    properties = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": settings.registry_port,
        "quarkus.http.access-log.enabled": "false",
        "quarkus.log.console.format": "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1}: %s%e%n",
        "apicurio.storage.kind": "sql",
        "apicurio.storage.sql.kind": "postgresql",
        "apicurio.datasource.url": f"jdbc:postgresql://{HOST}:{settings.postgres_port}/registry",
        "apicurio.datasource.username": postgres.ROLE,
        "apicurio.datasource.jdbc.initial-size": 1,
        "apicurio.datasource.jdbc.min-size": 1,
        "apicurio.datasource.jdbc.max-size": 5,
    }
    return java.launch(
        java.classpath[0].name.removeprefix("apicurio-registry-app-").removesuffix("-runner.jar"),
        [f"-Xmx{settings.registry_heap}", *(f"-D{name}={value}" for name, value in properties.items())],
        ["io.quarkus.runner.GeneratedMain"],
        # On the command line every user of the machine could read it.
        env={"APICURIO_DATASOURCE_PASSWORD": settings.database_password.get_secret_value()},
    )


async def _ready(settings: Settings) -> None:
    """Sets the compatibility rule of the contract, registers a schema and fetches it."""
    async with httpx.AsyncClient(base_url=settings.registry_url, timeout=5) as http:
        try:
            await _ask(http, "PUT", "/config", {"compatibility": COMPATIBILITY})
            registered = await _ask(http, "POST", f"/subjects/{READY_SUBJECT}/versions", {"schema": READY_SCHEMA})
            fetched = await _ask(http, "GET", f"/schemas/ids/{registered['id']}")
        except httpx.HTTPError as error:
            raise NotReady(str(error) or type(error).__name__) from error
    if fetched["schema"] != READY_SCHEMA:
        raise NotReady("another schema was read than the one written")


async def _ask(http: httpx.AsyncClient, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, str]:
    answer = await http.request(method, path, json=body)
    answer.raise_for_status()
    document: dict[str, str] = answer.json()
    return document
