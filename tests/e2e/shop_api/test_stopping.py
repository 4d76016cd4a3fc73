"""The process reports its health, and finishes its work when it is stopped."""

import json
import socket

from tests.e2e.shop import Shop, new_sku, open_cart, put_in, put_product, started, versions
from tests.till import eventually


def test_the_process_reports_its_health(shop: Shop) -> None:
    with shop.client() as anyone:
        assert anyone.get("/healthz").json() == {"status": "alive"}
        assert anyone.get("/readyz").json() == {"status": "ready"}
        described = anyone.get("/openapi.json").json()["paths"]
        assert {"/v1/carts", "/v1/carts/{cart_id}/items", "/v1/products/{sku}", "/v1/sessions"} <= described.keys()
        assert anyone.get("/docs").status_code == 200


def test_a_stopped_process_finishes_the_requests_it_has_accepted(stack_environment: dict[str, str], shop: Shop) -> None:
    """A request whose body is still on its way when the signal comes is answered; new ones are not accepted."""
    with started(stack_environment, "api") as leaving, leaving.staff("operator") as operator, leaving.guest() as ann:
        mug = put_product(operator, new_sku())
        path = open_cart(ann)
        put_in(ann, path, mug)
        body = json.dumps({"sku": mug.sku, "quantity": 4}).encode()
        with socket.create_connection(("127.0.0.1", leaving.port)) as connection:
            connection.sendall(
                f"POST {path}/items HTTP/1.1\r\nHost: shop\r\nAuthorization: {ann.headers['Authorization']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body[:10]
            )
            eventually(lambda: len(ann.get("/healthz").content) > 0, "it has read what was sent before")
            leaving.process.terminate()
            eventually(lambda: not accepts(leaving.port), "it accepts no more connections")
            connection.sendall(body[10:])
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert leaving.process.wait(20) == 0, leaving.log.read_text()
    stream_id = path.replace("/v1/carts/", "cart:")
    assert shop.fetch("cart", "SELECT max(version) FROM events WHERE stream_id = $1", stream_id)[0][0] == 3
    shop.wait_until_published()
    assert versions(shop.topic("cart.events"), stream_id) == [1, 2, 3]


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
