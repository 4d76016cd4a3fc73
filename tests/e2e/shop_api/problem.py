"""Checks an error answer."""

from typing import Any

import httpx


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Checks that the answer is this problem (RFC 9457) and reveals nothing internal, and returns it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"urn:till:problem:{code}", document
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert "Traceback" not in answer.text
    return document
