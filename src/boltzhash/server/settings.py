"""Settings of the service, and its limits."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

from boltzhash.search.order import CANDIDATES

KEY_VARIABLE = "BOLTZHASH_API_KEY"
READ_KEY_VARIABLE = "BOLTZHASH_READ_KEY"
SETTINGS_VARIABLE = "BOLTZHASH_SERVICE"  # how worker processes get theirs

MAX_HEADERS = 1 << 16  # bytes, with the address
MAX_BODY = 1 << 20  # bytes
MAX_WRITE_BODY = 8 << 20  # bytes, of requests that carry the key
MAX_QUERIES = 20  # in one request
MAX_QUERY = 100_000  # characters
MAX_FEATURES = 65_536  # numbers of a vector
MAX_TEXT = 1_000_000  # characters of a document that is added
MAX_K = 100
MAX_REACH = CANDIDATES  # hits that offset and k reach: as many are put in order
MAX_FACETS = 10
MAX_FIELD = 200  # characters of a field's name
MAX_BATCH = 1000  # documents per request: one transaction
MAX_CONDITIONS = 32  # of a filter
MAX_VALUES = 1000  # of a condition
MAX_DEPTH = 32  # of lists and objects in metadata
MAX_DUPLICATES_AMONG = 200_000  # documents that are compared while someone waits
MAX_GROUPS = 100
MAX_IN_GROUP = 20  # documents of a group that are sent whole
MAX_LISTED_IN_GROUP = 1000

READ_SECONDS = 10.0
SLOW_READ_SECONDS = 60.0  # statistics, fields, near-duplicates, map
FIELDS_SECONDS = 10.0  # counts of metadata fields may be that old
OVERVIEW_SECONDS = 60.0
WRITE_WAIT = 5.0  # for another process that writes
HEADER_SECONDS = 10.0  # for a client to send its request line and headers
BODY_SECONDS = 20.0  # for a client to send the rest
SEND_SECONDS = 60.0  # for a client to read the answer
SHUTDOWN_SECONDS = 30  # for accepted requests when the service ends
MAX_CONNECTIONS = 512  # per worker
MAX_COMPUTED = 8  # different answers of a kind that are computed or wait: near-duplicates; map
MAX_WAITING = 256  # requests of a worker that wait for a thread


@dataclass(frozen=True)
class Settings:
    """One collection, and who may ask for it.

    ``api_key`` None switches writing off. ``read_key`` None lets everyone read. ``origins`` are web
    sites whose pages may use the service, such as ``https://search.example.org``. A request must be
    addressed to an IP address, to localhost, to one of ``origins`` or of ``allowed_hosts`` ("*" is
    any): otherwise a page elsewhere could point its own name at our address, and so read what is
    meant for those who reach it.
    """

    collection: str  # where it is: a folder, or the URL of an engine
    origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    api_key: str | None = field(default=None, repr=False)
    read_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for origin in self.origins:
            check_origin(origin)
        for host in self.allowed_hosts:
            check_allowed_host(host)
        if self.api_key is not None:
            check_key(self.api_key, KEY_VARIABLE)
        if self.read_key is not None:
            check_key(self.read_key, READ_KEY_VARIABLE)

    def to_environment(self) -> None:
        """Pass everything to worker processes, except the keys, which they already have."""
        plain = asdict(self)
        del plain["api_key"], plain["read_key"]
        os.environ[SETTINGS_VARIABLE] = json.dumps(plain)

    @classmethod
    def from_environment(cls) -> Settings:
        plain = json.loads(os.environ[SETTINGS_VARIABLE])
        return cls(
            plain["collection"],
            tuple(plain["origins"]),
            tuple(plain["allowed_hosts"]),
            os.environ.get(KEY_VARIABLE),
            os.environ.get(READ_KEY_VARIABLE),
        )


def check_origin(origin: str) -> None:
    """
    >>> check_origin("https://search.example.org/path")
    Traceback (most recent call last):
    ...
    ValueError: an origin is scheme://host[:port], such as https://search.example.org, got ...
    """
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
        raise ValueError(
            f"an origin is scheme://host[:port], such as https://search.example.org, got {origin!r}"
        )


def check_allowed_host(host: str) -> None:
    """
    >>> check_allowed_host("search.example.org:8000")
    Traceback (most recent call last):
    ...
    ValueError: an allowed host is a name without scheme and port, such as search.example.org, or *, ...
    """
    if host != "*" and not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?", host):
        raise ValueError(
            "an allowed host is a name without scheme and port, such as search.example.org, or *, got "
            f"{host!r}"
        )


def check_key(key: str, variable: str) -> None:
    """Refuse a key that no header can carry; the message does not show it."""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        came = f"a key of {len(key)} characters that is not" if key else "an empty key"
        raise ValueError(f"{variable} must be printable ASCII without spaces, got {came}")
