"""Events for the lake's benchmarks: topics filled at once, and a shop that sells at a steady rate."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing.synchronize import Event

from infra.settings import Settings
from shared.envelope import now
from tests.roll import NOON, Press, shopping

CARTS = 4_000
EVENTS_OF_A_CART = 14


def fill(press: Press, events: int) -> int:
    """Sends events as a shop would over weeks, and returns how many."""
    sent = 0
    while sent < events:
        shop_events = shopping(
            min(CARTS, (events - sent) // EVENTS_OF_A_CART + 1), NOON + timedelta(hours=sent // 50_000)
        )
        press.send(shop_events)
        sent += len(shop_events)
    return sent


@contextmanager
def selling(settings: Settings, per_second: int) -> Iterator[None]:
    """Sells until the block ends, in a process of its own: a thread would compete with Spark's driver."""
    spawn = multiprocessing.get_context("spawn")
    over = spawn.Event()
    seller = spawn.Process(target=_sell, args=(settings, per_second, over))
    seller.start()
    try:
        yield
    finally:
        over.set()
        seller.join()


def _sell(settings: Settings, per_second: int, over: Event) -> None:
    press = Press(settings)
    began, second = time.monotonic(), 0
    while not over.is_set():
        shop_events = shopping(per_second // EVENTS_OF_A_CART, now(), seed=second, every=0)
        for tenth in range(10):
            press.send([replace(one, kafka_time=now()) for one in shop_events[tenth::10]])
            over.wait(max(0.0, began + second + (tenth + 1) / 10 - time.monotonic()))
        second += 1
