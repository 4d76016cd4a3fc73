"""Successful answers: JSON with ETag and Event-Position."""

from typing import Any

import orjson
from fastapi import Response

from shared.decider import Versioned
from shared.envelope import Headers

JSON = ("content-type", b"application/json")


class Answer(Response):
    """A response with exactly the headers it is given. Starlette's own also looks for missing ones, at a cost."""

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [(name.encode(), value) for name, value in headers]
        self.raw_headers.append((b"content-length", b"%d" % len(body)))


def version_headers(shown: Versioned[Any], location: str | None = None) -> Headers:
    """Returns the headers of an answer that shows this version: Content-Type, ETag, Event-Position and Location."""
    headers: Headers = [
        JSON,
        ("etag", b'"%d"' % shown.version),
        ("event-position", f"{shown.stream_id}@{shown.version}".encode()),
    ]
    return [*headers, ("location", location.encode())] if location else headers


def answer_read(shown: Versioned[Any], body: Any) -> Response:
    return Answer(200, version_headers(shown), orjson.dumps(body))


def answer_list(body: Any) -> Response:
    return Answer(200, [JSON], orjson.dumps(body))
