"""Parses the headers that make a write conditional or repeatable: If-Match, If-None-Match and Idempotency-Key."""

import re

from shared.http.problems import Problem

# Quoted as it is answered, or bare as one types it into a shell.
ETAG = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})')
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,200}")


def parse_idempotency_key(header: str | None) -> str | None:
    if header is not None and not IDEMPOTENCY_KEY.fullmatch(header):
        raise Problem(
            400, "idempotency-key-invalid", "An Idempotency-Key has 1 to 200 printable ASCII characters, and no space."
        )
    return header


def parse_expected_version(if_match: str | None, if_none_match: str | None) -> int | None:
    """Returns the version that the stream must have (0: it must not exist yet), or None if any will do."""
    if if_none_match is not None:
        if if_none_match != "*":
            raise Problem(400, "if-none-match-invalid", "If-None-Match takes *: only if there is none yet.")
        return 0
    if if_match is None or if_match == "*":
        return None
    if not (etag := ETAG.fullmatch(if_match)):
        raise Problem(400, "if-match-invalid", 'If-Match takes one ETag as it was answered, such as "7".')
    return int(etag[1] or etag[2])
