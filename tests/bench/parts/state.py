"""Measures `till state --at` on a stream of a hundred thousand events, with the start of the command line."""

import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from infra.settings import Settings
from services.catalog.events import ProductListed, StockReserved, StockSold
from services.catalog.wiring import catalog
from services.common.money import Money
from shared.envelope import Recorded
from shared.schemas.contract.event_schemas import load_schemas
from shared.schemas.registration import push
from shared.schemas.registry import Registry
from shared.service import Runtime, open_service
from shared.store.event_store import columns
from tests.bench.figures import Figure
from tests.bench.kit.kernel import Stopwatch

EVENTS = 100_000
ROUNDS = 9
LIMIT_MS = 300
CHUNK = 10_000
SKU = "BENCH-1"
STREAM = f"stock:{SKU}"
TILL = Path(sys.executable).with_name("till")
BEGINNING = datetime.now(UTC) - timedelta(seconds=EVENTS + 3600)
FILL = """
INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
SELECT stream_id, version, uuidv7(), type, time, correlation_id, causation_id, actor, traceparent, value
FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::timestamptz[],
            $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[])
     AS event (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
"""


async def run(settings: Settings) -> list[Figure]:
    async with Registry(settings) as registry:
        await push(registry, load_schemas())
    async with open_service(catalog(settings), settings) as runtime:
        await _fill(runtime)
        await runtime.handler.state(STREAM)  # as the first command to it would: it leaves milestones
        folded = Stopwatch()
        with folded:
            await _from_the_beginning(runtime)
    with tempfile.TemporaryDirectory() as compiled:
        environment = os.environ | settings.environment() | {"PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in ("start", "state"):
            _timed(environment, name, 0)  # compiles what an installation has compiled
        started = [_timed(environment, "start", n) for n in range(ROUNDS)]
        asked = [_timed(environment, "state", n) for n in range(ROUNDS)]
    median = statistics.median(asked)
    note = f"the start of till alone {statistics.median(started):.0f} ms, a full replay {folded.seconds * 1000:.0f} ms"
    return [
        Figure(f"till state --at, of {EVENTS:,} events", median, LIMIT_MS, "ms", at_most=1.0),
        Figure("till --version, for comparison", statistics.median(started), median, "ms", note=note),
    ]


def _timed(environment: dict[str, str], what: str, round_: int) -> float:
    """Returns milliseconds. Each round asks for another moment."""
    at = BEGINNING + timedelta(seconds=EVENTS // ROUNDS * round_ + EVENTS // ROUNDS // 2)
    arguments = ["--version"] if what == "start" else ["state", STREAM, "--at", at.isoformat()]
    with Stopwatch() as watch:
        subprocess.run([TILL, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return watch.seconds * 1000


async def _from_the_beginning(runtime: Runtime) -> None:
    decider, state, version = runtime.service.decider, runtime.service.decider.initial, 0
    while values := await runtime.store.load(STREAM, version):
        for value in values:
            state = decider.evolve(state, await runtime.decoder.decode(value))
        version += len(values)


async def _fill(runtime: Runtime) -> None:
    """Fills the stream of a hot product: orders reserve and buy one piece each, one event per second."""
    for table in ("events", "snapshots", "milestones"):
        await runtime.pool.execute(f"DELETE FROM {table} WHERE stream_id = $1", STREAM)
    for first in range(1, EVENTS + 1, CHUNK):
        rows = [_event(runtime, version) for version in range(first, first + CHUNK)]
        await runtime.pool.execute(FILL, *columns(rows, 10))
    await runtime.pool.execute("VACUUM ANALYZE events")


def _event(runtime: Runtime, version: int) -> Recorded:
    order_id = f"0190b1de-0000-7000-8000-{version // 2:012}"
    event: ProductListed | StockReserved | StockSold
    if version == 1:
        event = ProductListed(SKU, "Enamel mug 350 ml", Money(1290, "EUR"), 1_000_000)
    else:
        event = StockSold(SKU, order_id, 1) if version % 2 else StockReserved(SKU, order_id, 1)
    time = BEGINNING + timedelta(seconds=version)
    value = runtime.codec.encode(event)
    return Recorded(STREAM, version, "", type(event).__name__, time, "", "", "bench", "", value)
