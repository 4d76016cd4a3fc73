"""Replay of one long stream, compared with fetch + fastavro + fold, and with the `eventsourcing` library."""

import asyncio
from io import BytesIO
from typing import Any

from fastavro import schemaless_reader
from uuid_utils import uuid7

from infra.settings import Settings
from services.cart.commands import SetQuantity
from services.cart.decider import evolve, initial
from shared.handler import CommandHandler
from shared.schemas.codec import PREFIX, Codec, schema_id_of
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.records import from_record
from shared.schemas.registry import Registry
from shared.schemas.service_schemas import ServiceSchemas
from shared.service import Runtime
from shared.store.recording import Recorder
from shared.store.snapshots import Snapshots
from shared.store.states import States
from tests.bench.commands import TUNED, TheirCart, their_application
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CUSTOMER, ME, MUG, Stopwatch, add_item, cart_service, empty, open_carts
from tests.bench.parts import looking_back, state

EVENTS = 50_000
THEIR_EVENTS = 10_000
NEVER = 10**9


async def run(settings: Settings) -> list[Figure]:
    async with cart_service(settings) as runtime:
        await empty(runtime.pool)
        stream_id = await _long_stream(runtime)

        async def ours() -> float:
            handler = await _cold_handler(runtime, settings)
            with Stopwatch() as watch:
                reached = (await handler.state(stream_id)).version
            return reached / watch.seconds

        bare = await side_by_side(ours, lambda: _bare(runtime, stream_id))
        application = their_application(settings, TUNED)
        try:
            theirs = await side_by_side(ours, lambda: _theirs(application), rounds=3)
        finally:
            application.close()
    return [
        Figure("replay of a long stream, bare fetch + decode + fold", *bare, "events/s", at_least=0.85),
        Figure("replay of a long stream, eventsourcing", *theirs, "events/s", at_least=4.5),
        *await state.run(settings),
        *await looking_back.run(settings),
    ]


async def _long_stream(runtime: Runtime) -> str:
    name = str(uuid7())
    stream_id = f"cart:{name}"
    await open_carts(runtime.handler, [name])
    for sku in range(10):
        await runtime.handler.handle(stream_id, add_item(sku), ME)
    commands = [SetQuantity(CUSTOMER, f"SKU-{n % 10}", 2 + n // 10 % 50, MUG, n) for n in range(EVENTS)]
    for start in range(0, EVENTS, 2_000):
        await asyncio.gather(*(runtime.handler.handle(stream_id, c, ME) for c in commands[start : start + 2_000]))
    await runtime.pool.execute("DELETE FROM snapshots")
    return stream_id


async def _cold_handler(runtime: Runtime, settings: Settings) -> CommandHandler[Any, Any, Any]:
    """A handler as after a restart, with an empty state cache and without snapshots."""
    decider, codec = runtime.service.decider, Codec()
    async with Registry(settings) as registry:
        await ServiceSchemas(runtime.pool, registry, load_schemas(), codec).bind(decider.topic, decider.events)
    states = States(decider, runtime.store, codec, Snapshots(runtime.pool, decider, every=NEVER))
    return CommandHandler(decider, runtime.store, states, Recorder(decider, codec, "/bench"))


async def _bare(runtime: Runtime, stream_id: str) -> float:
    newest = {schema.type: schema for schema in load_schemas().newest_of_topic("cart.events")}
    known = await runtime.pool.fetch("SELECT id, subject FROM schemas")
    types = {event.__name__: event for event in runtime.service.decider.events}
    readers = {}
    for schema_id, subject in known:
        name = subject.rpartition(".")[2]
        if name in types:
            readers[schema_id] = newest[name].parsed, from_record(types[name])
    with Stopwatch() as watch:
        rows = await runtime.pool.fetch("SELECT value FROM events WHERE stream_id = $1 ORDER BY version", stream_id)
        state = initial
        for row in rows:
            schema, build = readers[schema_id_of(row[0])]
            state = evolve(state, build(schemaless_reader(BytesIO(row[0][PREFIX.size :]), schema, None)))
    return len(rows) / watch.seconds


async def _theirs(application: Any) -> float:
    cart = TheirCart("customer")
    for n in range(THEIR_EVENTS):
        cart.add_item(f"SKU-{n % 40}", "Enamel mug 350 ml", 1, 1290, "EUR")
    application.save(cart)
    if hasattr(application.repository.cache, "clear"):
        application.repository.cache.clear()
    with Stopwatch() as watch:
        application.repository.get(cart.id)
    return THEIR_EVENTS / watch.seconds
