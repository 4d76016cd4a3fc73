"""Measures `till verify` of a million events and `till rebuild` of a view of a million, against a bare decode.

A bare decode, as in the bench of replay, fetches values from the store, decodes them with fastavro and makes events of
them. For comparison, without a limit, fastavro alone decodes bytes in memory. The rebuild runs while people shop: their
p99 is compared with that of the same shop without a rebuild.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from fastavro import schemaless_reader

from infra.settings import Settings
from services.operations.reading.views import list_views
from services.operations.rebuild.rebuild import rebuild
from services.shop.services import shop_services
from shared.schemas.codec import PREFIX, schema_id_of
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.records import Convert, from_record
from tests.bench.figures import Figure
from tests.bench.kit.buying import ask, come_in
from tests.bench.kit.history import History, Written, history, sku
from tests.bench.kit.kernel import Stopwatch
from tests.bench.kit.processes import started
from tests.bench.kit.thin import connected

EVENTS = 1_000_000
ROUNDS = 3
SHOPPERS, PAUSE_SECONDS, QUIET_SECONDS = 4, 0.05, 10.0
TILL = Path(sys.executable).with_name("till")


class Bare(NamedTuple):
    """Events per second of the bare decode."""

    fetched: float
    """The rate of fetching values from the store and making events of them."""
    decoded: float
    """The rate of fastavro alone."""


async def run(_settings: Settings) -> list[Figure]:
    async with history(EVENTS) as shop:
        for target in list_views(shop_services(shop.settings)):
            await rebuild(shop.settings, shop_services(shop.settings), target)
        verified = [await _verify(shop) for _ in range(ROUNDS)]
        await shop.write_orders_alone(EVENTS)
        await shop.checkpoint()
        rebuilt, busy, quiet = await _rebuild(shop)
        orders = await _bare([shop.stores["order"]])
    ours, bare = sorted(verified, key=lambda pair: pair[0] / pair[1].fetched)[ROUNDS // 2]
    return [
        Figure(f"verify of {EVENTS:,} events, bare fetch + decode", ours, bare.fetched, "events/s", at_least=0.5),
        Figure("  and fastavro alone", ours, bare.decoded, "events/s"),
        Figure(
            f"rebuild of a view of {EVENTS:,}, bare fetch + decode", rebuilt, orders.fetched, "events/s", at_least=0.3
        ),
        Figure("  and fastavro alone", rebuilt, orders.decoded, "events/s"),
        Figure("p99 of shoppers during that rebuild (without)", busy, quiet, "ms", at_most=2),
    ]


async def _verify(shop: History) -> tuple[float, Bare]:
    """Measures ours and then the reference, so that noise hits both alike."""
    with started(shop.settings, {"psp": ""}), Stopwatch() as watch:
        document = json.loads(await _till(shop.settings, "verify", "--json"))
    if not document["ok"]:
        raise RuntimeError(f"the history that was written does not hold: {document}")
    events = sum(it["looked_at"] for it in document["checks"] if it["check"].startswith("store"))
    return events / watch.seconds, await _bare(shop.stores.values())


async def _till(settings: Settings, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        TILL, *arguments, env=os.environ | settings.environment(), stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"till {' '.join(arguments)} ended with {process.returncode}: {out.decode()}")
    return out.decode()


async def _bare(stores: Iterable[Written]) -> Bare:
    values, fetching, decoding, building = 0, 0.0, 0.0, 0.0
    for written in stores:
        readers = await _readers(written)
        after = 0
        while True:
            with Stopwatch() as fetch:
                rows = await written.pool.fetch(
                    "SELECT position, value FROM events WHERE position > $1 ORDER BY position LIMIT 10000", after
                )
            if not rows:
                break
            after, values, fetching = rows[-1][0], values + len(rows), fetching + fetch.seconds
            with Stopwatch() as decode:
                for _, value in rows:
                    schemaless_reader(BytesIO(value[PREFIX.size :]), readers[schema_id_of(value)][0], None)
            with Stopwatch() as build:
                for _, value in rows:
                    schema, made_into = readers[schema_id_of(value)]
                    made_into(schemaless_reader(BytesIO(value[PREFIX.size :]), schema, None))
            decoding, building = decoding + decode.seconds, building + build.seconds
    return Bare(values / (fetching + building), values / decoding)


async def _readers(written: Written) -> dict[int, tuple[Any, Convert]]:
    topic, types = written.service.decider.topic, {it.__name__: it for it in written.service.decider.events}
    newest = {schema.subject: schema for schema in load_schemas().newest_of_topic(topic) if schema.type in types}
    known = await written.pool.fetch("SELECT id, subject, schema_text FROM schemas")
    return {
        schema_id: (newest[subject].parsed, from_record(types[newest[subject].type]))
        for schema_id, subject, text in known
        if subject in newest and text == newest[subject].text
    }


async def _rebuild(shop: History) -> tuple[float, float, float]:
    """Returns events per second, and the p99 of shoppers during the rebuild and before it."""
    with started(shop.settings, {"psp": "", "shop": "all"}):
        await _shop_until(shop.settings, asyncio.create_task(asyncio.sleep(QUIET_SECONDS / 2)))
        quiet = await _shop_until(shop.settings, asyncio.create_task(asyncio.sleep(QUIET_SECONDS)))
        rebuilding = asyncio.create_task(_till(shop.settings, "rebuild", "order.orders", "--json"))
        busy = await _shop_until(shop.settings, rebuilding)
        [done] = json.loads(await rebuilding)
    return done["events"] / done["seconds"], busy, quiet


async def _shop_until(settings: Settings, done: "asyncio.Task[Any]") -> float:
    latencies: list[float] = []

    async def shopper(number: int) -> None:
        async with connected(settings.shop_port) as shop:
            while not done.done():
                await come_in(shop)
                cart = (await ask(shop, "POST", "/v1/carts"))["cart_id"]
                for n in range(20):
                    began = time.perf_counter()
                    await ask(shop, "POST", f"/v1/carts/{cart}/items", {"sku": sku(number + n), "quantity": 1})
                    latencies.append((time.perf_counter() - began) * 1000)
                    await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(shopper(n) for n in range(SHOPPERS)))
    return statistics.quantiles(latencies, n=100)[98]
