"""A view is rebuilt while people buy: compared, swapped, undone, and built as of the past."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from sqlalchemy.schema import CreateTable

from infra.settings import Settings
from services.operations.reading.views import find_views
from services.operations.rebuild.build import Rebuilt, Source
from services.operations.rebuild.rebuild import rebuild, undo
from services.shop.services import shop_services
from shared.service import Projection, Runtime
from shared.store.database import listening
from tests.integration.services.operations.conftest import Check
from tests.integration.shared.loops import running, until
from tests.integration.shared.tallies import Tallies, add, handled, new_tallies, relayed
from tests.integration.shared.tally_view import VIEW
from tests.till import RunTill, Till, eventually

Sql = Callable[..., list[Any]]
VIEWS = {"order.orders": "order", "catalog.products": "catalog", "cart.products": "catalog"}
"""Views, each with the service whose events it is made of."""


def rows(sql: Sql, view: str) -> list[tuple[Any, ...]]:
    service, _, table = view.partition(".")
    return [tuple(row) for row in sql(service, f"SELECT * FROM {table} ORDER BY 1")]


def indexes(sql: Sql, service: str) -> set[str]:
    return {row[0] for row in sql(service, "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()")}


def built(shop: Settings, view: str, source: Source = "store") -> Rebuilt:
    services = shop_services(shop)
    [target] = find_views(services, view)
    return asyncio.run(rebuild(shop, services, target, source))


@pytest.fixture(autouse=True)
def not_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the priority of this process, which has other tests to run."""
    monkeypatch.setattr("os.nice", lambda _: 0)


def test_before_the_first_rebuild_there_is_nothing_to_undo(run_till: RunTill, sql: Sql) -> None:
    ran = run_till("rebuild", "orders", "--undo")
    assert ran.code == 2
    assert "there is nothing to go back to" in ran.err
    assert sql("order", "SELECT FROM pg_namespace WHERE nspname LIKE 'order\\_\\_%'") == []


@pytest.mark.parametrize("source", ["store", "kafka"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_with_a_wrong_and_a_lost_row_is_rebuilt(
    shop: Settings, sql: Sql, check: Check, view: str, source: Source
) -> None:
    service, _, table = view.partition(".")
    key = {"orders": "order_id", "products": "sku"}[table]
    column = {"orders": "total", "products": "price"}[table]
    before, names = rows(sql, view), indexes(sql, service)
    [[spoilt]] = sql(service, f"SELECT min({key}) FROM {table}")
    [[lost]] = sql(service, f"SELECT max({key}) FROM {table}")
    sql(service, f"UPDATE {table} SET {column} = {column} + 1 WHERE {key} = $1", spoilt)
    sql(service, f"DELETE FROM {table} WHERE {key} = $1", lost)

    compared = built(shop, view, source).comparison

    assert compared
    assert compared.counts == {"changed": 1, "missing": 1}
    [changed] = [it for it in compared.shown if it.kind == "changed"]
    assert changed.key == spoilt
    assert changed.fields[column][0] == changed.fields[column][1] + 1
    assert rows(sql, view) == before
    assert indexes(sql, service) == names
    assert check("folds", VIEWS[view], view).total == 0


def test_a_rebuild_can_be_undone_and_done_again(run_till: RunTill, sql: Sql, check: Check) -> None:
    right = rows(sql, "order.orders")
    [[spoilt]] = sql("order", "SELECT min(order_id) FROM orders")
    sql("order", "UPDATE orders SET reason = 'planted' WHERE order_id = $1", spoilt)
    assert run_till("rebuild", "order").code == 0
    assert rows(sql, "order.orders") == right

    back = run_till("rebuild", "orders", "--undo")
    assert back.code == 0, back.err
    assert "the previous view is back" in back.out
    assert sql("order", "SELECT reason FROM orders WHERE order_id = $1", spoilt)[0][0] == "planted"

    assert run_till("rebuild", "orders", "--undo").code == 0
    assert rows(sql, "order.orders") == right
    assert check("folds", "order").total == 0


def test_people_buy_meanwhile_and_nothing_is_missed_or_applied_twice(
    till: Till, shop: Settings, sql: Sql, check: Check
) -> None:
    before = sql("order", "SELECT count(*) FROM orders")
    with till.begin("simulate", "--shoppers", "6", "--seconds", "6", "--seed", "11", "--json") as selling:
        eventually(lambda: sql("order", "SELECT count(*) FROM orders") > before, "somebody buys", 60)
        rebuilt = 0
        while selling.poll() is None:
            for service in ("order", "catalog", "cart"):
                compared = built(shop, service).comparison
                assert compared
                assert "changed" not in compared.counts, compared.shown
            rebuilt += 1
        out, err = selling.communicate()
    assert selling.returncode == 0, out + err
    assert rebuilt
    for view in VIEWS:
        assert check("folds", VIEWS[view], view).violations == []
    assert check("flow").violations == []


def test_processes_that_cache_rows_are_notified_of_those_a_swap_changes(shop: Settings, sql: Sql) -> None:
    [[sku]] = sql("cart", "SELECT min(sku) FROM products")
    sql("cart", "UPDATE products SET price = 1 WHERE sku = $1", sku)
    notified: list[object] = []

    async def rebuild_and_listen() -> None:
        connection = await asyncpg.connect(shop.database_url.get_secret_value())
        async with listening(connection, "cart_products", lambda *notice: notified.append(notice[3])):
            await asyncio.to_thread(built, shop, "cart")
            await connection.execute("SELECT 1")
        await connection.close()

    asyncio.run(rebuild_and_listen())
    assert notified == [sku]


def test_a_view_as_of_a_moment_is_built_next_to_the_live_one(run_till: RunTill, sql: Sql) -> None:
    placed = sql("order", "SELECT placed_at, order_id FROM orders ORDER BY placed_at")
    middle = placed[len(placed) // 2]["placed_at"]
    moment = datetime.fromtimestamp(middle / 1000 + 0.001, UTC).isoformat(timespec="milliseconds")
    live = rows(sql, "order.orders")
    for source in ("store", "kafka"):
        ran = run_till("rebuild", "orders", "--at", moment.replace("+00:00", "Z"), "--from", source, "--json")
        assert ran.code == 0, ran.err
        [done] = ran.document
        then = sql(done["schema"], "SELECT order_id, status FROM orders")
        assert {row["order_id"] for row in then} <= {row["order_id"] for row in placed}
        assert 0 < len(then) <= len(placed) // 2 + 1
        sql("order", f'DROP SCHEMA "{done["schema"]}" CASCADE')
    assert rows(sql, "order.orders") == live, "nothing is swapped"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "There is no view nothing. There are: cart.products"),
        (["payment"], "payment has no views."),
        (["products"], "products is a view of several services. Name one of: cart.products, catalog.products."),
        (["orders", "--at", "yesterday"], "is not a moment"),
        (["orders", "--at", "2020-01-01T00:00:00Z"], "order.orders was still empty then."),
        (["orders", "--undo", "--at", "-1m"], "--undo goes back"),
    ],
)
def test_bad_usage_of_rebuild_gives_a_reason(run_till: RunTill, arguments: list[str], message: str) -> None:
    ran = run_till("rebuild", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_without_a_stack_the_commands_say_how_to_start_it(run_till: RunTill) -> None:
    for command in (["rebuild", "orders"], ["verify"], ["whatif", "decisions"], ["replay", "order.events"]):
        ran = run_till(*command, TILL_POSTGRES_PORT="1", TILL_KAFKA_PORT="1")
        assert ran.code == 2, ran.err
        assert "till up" in ran.err


@pytest.fixture
async def tallies(shop: Settings) -> AsyncIterator[Tallies]:
    async with new_tallies(shop) as tallies:
        projection = Projection("tallies", [tallies.topic], VIEW.apply, VIEW)
        yield replace(tallies, service=replace(tallies.service, projections=[projection]))


@asynccontextmanager
async def opened(tallies: Tallies) -> AsyncIterator[Runtime]:
    async with tallies.opened() as runtime:
        await runtime.pool.execute(str(CreateTable(VIEW.declaration)))
        yield runtime


async def totals(runtime: Runtime) -> dict[str, tuple[int, int]]:
    return {row[0]: (row[1], row[2]) for row in await runtime.pool.fetch("SELECT * FROM tallies")}


@pytest.mark.anyio
async def test_a_consumer_that_was_far_behind_continues_from_the_offsets_of_the_new_view(tallies: Tallies) -> None:
    """A batch that it read before the swap is void: it is fenced, and seeks again."""
    async with opened(tallies) as runtime:
        [target] = find_views([tallies.service], "tallies")
        await handled(runtime, "tally:a", add(*range(10)))
        await relayed(runtime)
        done = await rebuild(tallies.settings, [tallies.service], target, schemas=tallies.schemas)
        assert done.in_flight
        assert await totals(runtime) == {"tally:a": (45, 10)}
        [consumer] = runtime.consumers
        async with running(consumer.run(), runtime.relay.run()):
            await handled(runtime, "tally:a", add(5))

            async def reached() -> bool:
                return await totals(runtime) == {"tally:a": (50, 11)}

            await until(reached)
            # The same again, three times, with a consumer that is running and events that arrive meanwhile.
            for n in range(3):
                await handled(runtime, f"tally:{n}", add(1, 2))
                await rebuild(tallies.settings, [tallies.service], target, schemas=tallies.schemas)
                await handled(runtime, f"tally:{n}", add(3))

            async def all_there() -> bool:
                expected = {f"tally:{n}": (6, 3) for n in range(3)}
                return await totals(runtime) == expected | {"tally:a": (50, 11)}

            await until(all_there)
            back = await undo(tallies.settings, [tallies.service], target, schemas=tallies.schemas)
            assert back.comparison
            assert back.comparison.total == 0
        await runtime.pool.execute(f'DROP SCHEMA "{tallies.service.name}__old" CASCADE')
        await runtime.pool.execute(f'DROP SCHEMA "{tallies.service.name}__new" CASCADE')
