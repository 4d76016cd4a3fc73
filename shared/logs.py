"""Structured logs: one JSON object per line, with the correlation id of the request or message behind it."""

import logging
from contextvars import ContextVar
from datetime import UTC, datetime

import orjson

from shared.settings import Settings

correlation: ContextVar[str] = ContextVar("correlation", default="")

STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object, with its extra fields and the correlation id."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **fields(record),
        }
        if correlation_id := correlation.get():
            entry["correlation_id"] = correlation_id
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode()


class Text(logging.Formatter):
    """Formats a record as a line to read, with its extra fields at the end."""

    def format(self, record: logging.LogRecord) -> str:
        more = " ".join(f"{name}={value}" for name, value in fields(record).items())
        return f"{super().format(record)}  {more}".rstrip()


def configure(settings: Settings) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if settings.log_format == "json" else Text("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    # These report each reconnect at length; our own loops log it once.
    for noisy in ("httpx", "alembic"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
