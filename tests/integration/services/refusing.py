"""Makes PostgreSQL refuse to append to one stream until the end of a block: a fault that no message causes."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.shop import Shop

REFUSAL = "RaiseError: the books are closed"


@contextmanager
def refusing(shop: Shop, service: str, stream_id: str) -> Iterator[None]:
    name = f'"refuse {stream_id}"'
    shop.fetch(
        service,
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'the books are closed'; END $$",
    )
    shop.fetch(
        service,
        f"CREATE TRIGGER {name} BEFORE INSERT ON events FOR EACH ROW"
        f" WHEN (NEW.stream_id = '{stream_id}') EXECUTE FUNCTION {name}()",
    )
    try:
        yield
    finally:
        shop.fetch(service, f"DROP FUNCTION {name} CASCADE")
