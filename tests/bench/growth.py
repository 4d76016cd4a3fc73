"""The cost of growth: appends to a store of 5 million events compared with 100 thousand, and memory over a million."""

import psutil

from infra.settings import Settings
from shared.store.database import open_pool
from shared.store.event_store import EventStore
from shared.store.migrate import migrate
from tests.bench.append import rate
from tests.bench.figures import Figure, side_by_side
from tests.bench.kit.kernel import CONCURRENCY

SMALL, LARGE = 100_000, 5_000_000
SETTLE = 200_000
WARM, MILLION = 100_000, 1_000_000

FILL = """
INSERT INTO events (stream_id, version, event_id, type, time, correlation_id, causation_id, actor, traceparent, value)
SELECT 'cart:' || uuidv7() || n / 10, n % 10 + 1, uuidv7(), 'ItemAdded', clock_timestamp(),
       uuidv7()::text, uuidv7()::text, uuidv7()::text, repeat('0', 55), decode(repeat('00', 64), 'hex')
FROM generate_series(1, $1::bigint) n
"""


async def run(settings: Settings) -> list[Figure]:
    url = settings.database_url.get_secret_value()
    for service, size in (("bench_small", SMALL), ("bench_large", LARGE)):
        await migrate(url, service)
        async with await open_pool(settings, service) as pool:
            await pool.execute("TRUNCATE events, outbox")
            await pool.execute(FILL, size, timeout=900)
            await pool.execute("VACUUM ANALYZE events", timeout=900)

    async with (
        await open_pool(settings, "bench_small") as small_pool,
        await open_pool(settings, "bench_large") as large_pool,
        EventStore(small_pool) as small,
        EventStore(large_pool) as large,
    ):
        # Both settle after the fill: a real store of that size has been running for a long time.
        for store in (small, large):
            await rate(store, SETTLE // CONCURRENCY)
        speed = await side_by_side(lambda: rate(large), lambda: rate(small), rounds=9)
        process = psutil.Process()
        await rate(small, WARM // CONCURRENCY)
        before = process.memory_info().rss
        await rate(small, MILLION // CONCURRENCY)
        after = process.memory_info().rss
    return [
        Figure("append with 5 million events stored, 100 thousand", *speed, "appends/s", at_least=0.9),
        Figure("memory after a million appends, after 100 thousand", after / 1e6, before / 1e6, "MB", at_most=1.1),
    ]
