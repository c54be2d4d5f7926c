"""Addresses of engines, and how they are shown: never with what gives access."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SECRET_PARAMETERS = ("password", "token", "sslpassword", "passfile")
_SECRET_VARIABLES = ("PGPASSWORD", "MILVUS_TOKEN")


class Address(NamedTuple):
    """Where an engine is: ``postgresql`` or ``milvus``, and the whole URL."""

    kind: str
    url: str

    def __repr__(self) -> str:
        return f"Address({self.shown()!r})"

    def shown(self) -> str:
        """The URL without user, password and parameters: for messages and logs.

        >>> parse_address("postgresql://ann:secret@db.example/shop?sslmode=require").shown()
        'postgresql://db.example/shop'
        """
        rest = self.url.partition("://")[2]
        place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
        return f"{self.kind}://{place.rpartition('@')[2]}{slash}{path.rpartition('@')[2]}"

    def without_secrets(self, message: str) -> str:
        """A message of the engine in which nothing of the URL gives access.

        >>> parse_address("milvus://root:s%2Fcret@host").without_secrets("wrong: s/cret")
        'wrong: ***'
        """
        for secret in self._secrets():
            message = message.replace(secret, "***")
        return message

    def _secrets(self) -> list[str]:
        """What must not be shown; of a URL that can be read in two ways, after both."""
        rest = self.url.partition("://")[2]
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        found = {self.url, rest}
        for place in (authority, rest):
            credentials = place.rpartition("@")[0]
            found |= {credentials, credentials.partition(":")[2]}
        found |= {v for name, v in parse_qsl(rest.partition("?")[2]) if name in _SECRET_PARAMETERS}
        found |= {os.environ.get(name, "") for name in _SECRET_VARIABLES}
        found |= {unquote(secret) for secret in found}
        return sorted(filter(None, found), key=len, reverse=True)


def parse_address(url: str) -> Address:
    """
    >>> parse_address("mysql://host/db")
    Traceback (most recent call last):
    ...
    ValueError: url must begin with postgresql:// or milvus://, got 'mysql://…'
    """
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, got {type(url).__name__}")
    scheme, separator, _ = url.partition("://")
    kind = {"postgres": "postgresql"}.get(scheme, scheme)
    if not separator or kind not in ("postgresql", "milvus"):
        began = f"{scheme}://…" if separator else "none of them"
        raise ValueError(f"url must begin with postgresql:// or milvus://, got {began!r}")
    try:
        _ = urlsplit(url).port
    except ValueError:  # its own message would repeat what may be half a password
        raise ValueError(
            f"url: the part behind {kind}:// must be [user[:password]@]host[:port][/…], with other "
            "characters percent-encoded"
        ) from None
    return Address(kind, url)


def check_name(name: str) -> str:
    """The name of a collection becomes that of tables, so it is a plain one.

    >>> check_name("Books; DROP")
    Traceback (most recent call last):
    ...
    ValueError: name must be 1 to 40 of a-z, 0-9 and _, a letter first, got 'Books; DROP'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name must be 1 to 40 of a-z, 0-9 and _, a letter first, got {name!r}")
    return name
