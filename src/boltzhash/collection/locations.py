"""Where a collection is, in one string: a folder, or the URL of an engine; shown without credentials."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

FOLDER = "folder"
ENGINES = ("postgresql", "milvus")
DEFAULT_NAME = "documents"

_SAME = {"postgres": "postgresql"}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SECRET_PARAMETERS = ("password", "token", "sslpassword", "passfile")
_SECRET_VARIABLES = ("PGPASSWORD", "MILVUS_TOKEN")


class Location(NamedTuple):
    """A path or the URL of an engine, and the name of the collection there."""

    kind: str  # FOLDER, or one of ENGINES
    url: str
    name: str = ""

    def __repr__(self) -> str:
        return f"Location({self.shown()!r})"

    def shown(self) -> str:
        """As it was given, without user, password and parameters: for messages and logs.

        >>> parse_location("postgresql://ann:secret@db.example/shop?sslmode=require#books").shown()
        'postgresql://db.example/shop#books'
        >>> parse_location("my/library").shown()
        'my/library'
        """
        if self.kind == FOLDER:
            return self.url
        rest = self.url.partition("://")[2]
        place, slash, path = rest.partition("?")[0].partition("/")
        host = f"{place.rpartition('@')[2]}{slash}{path.rpartition('@')[2]}"
        return f"{self.kind}://{host}#{self.name}"

    def has_password(self) -> bool:
        """Whether the URL alone gives access, so others should not see it.

        >>> parse_location("milvus://root:secret@host").has_password()
        True
        """
        if self.kind == FOLDER:
            return False
        parameters = parse_qsl(self.url.partition("?")[2])
        return bool(urlsplit(self.url).password) or any(
            name in ("password", "token", "sslpassword") for name, _ in parameters
        )

    def without_secrets(self, message: str) -> str:
        """A message from the engine without anything in the URL that gives access.

        >>> parse_location("milvus://root:s%2Fcret@host").without_secrets("wrong: s/cret")
        'wrong: ***'
        """
        for secret in self._secrets():
            message = message.replace(secret, "***")
        return message

    def _secrets(self) -> list[str]:
        """What must not be shown; if a URL can be read in two ways, by either of them."""
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


def parse_location(location: str | Path) -> Location:
    """A folder, or ``postgresql://host/database#name``, ``milvus://host:19530/database#name``.

    What follows ``#`` names the collection on the engine; the default is "documents".

    >>> parse_location("postgresql://localhost/shop#books")
    Location('postgresql://localhost/shop#books')
    >>> parse_location("mysql://host/db")
    Traceback (most recent call last):
    ...
    ValueError: a collection is a folder, postgresql://… or milvus://…, got 'mysql://…'
    """
    if isinstance(location, Path):
        return Location(FOLDER, str(location))
    if not isinstance(location, str):
        raise TypeError(
            f"a collection is a folder, a string or a path, got {type(location).__name__}"
        )
    if not location:
        raise ValueError("a collection is a folder, postgresql://… or milvus://…, got ''")
    scheme, separator, _ = location.partition("://")
    if not separator:
        return Location(FOLDER, location)
    kind = _SAME.get(scheme, scheme)
    if kind not in ENGINES:
        shown = f"{scheme}://…"
        raise ValueError(f"a collection is a folder, postgresql://… or milvus://…, got {shown!r}")
    url, _, name = location.partition("#")
    try:
        _ = urlsplit(url).port
    except ValueError:  # its own message would repeat what may be half a password
        raise ValueError(
            f"the part after {kind}:// must be [user[:password]@]host[:port][/…], with other "
            "characters percent-encoded"
        ) from None
    if name and not _NAME.fullmatch(name):  # not shown: it, too, may be half a password
        raise ValueError(
            f"{kind}://…#NAME: the name of a collection is 1 to 40 of a-z, 0-9 and _, a letter first; a "
            "# before it must be percent-encoded"
        )
    return Location(kind, url, name or DEFAULT_NAME)
