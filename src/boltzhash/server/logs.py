"""Lines of the service's log: when, how bad, which request, what."""

from __future__ import annotations

import logging
import re
import uuid
from contextvars import ContextVar
from typing import Any

_request_id: ContextVar[str] = ContextVar("request_id", default="-")

_ACCEPTED = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")  # of what a proxy calls a request


def note_request_id(header: str | None) -> str:
    """Name the request in the log from here on: by its header, if that is a plain name.

    >>> note_request_id("from-the-proxy-7")
    'from-the-proxy-7'
    >>> len(note_request_id("two words"))
    32
    """
    name = header if header is not None and _ACCEPTED.fullmatch(header) else uuid.uuid4().hex
    _request_id.set(name)
    return name


class Lines(logging.Formatter):
    """``2026-07-09 12:00:00,123 ERROR [request id] message``; without a request it is ``-``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.request_id = _request_id.get()
        return super().format(record)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "boltzhash.server.logs.Lines"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        name: {"handlers": ["stderr"], "propagate": False} for name in ("uvicorn", "boltzhash")
    },
}
