"""Where a collection is, in one string: a folder, or the URL of an engine; shown without credentials."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

FOLDER = "folder"
_SECRET_PARAMETERS = ("password", "token", "sslpassword", "passfile")


class Location(NamedTuple):
    """A path or the URL of an engine, and the name of the collection there."""

    kind: str  # FOLDER, or the engine
    url: str
    name: str = ""
    password_in: tuple[str, ...] = ()  # variables and files that may hold the password instead

    def __repr__(self) -> str:
        return f"Location({self.shown()!r})"

    def shown(self) -> str:
        """As it was given, without user, password and parameters: for messages and logs.

        >>> from boltzhash.collection.engines import parse_location
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

        >>> Location("postgresql", "postgresql://ann:secret@host").has_password()
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

        >>> Location("postgresql", "postgresql://a:s%2Fcret@host").without_secrets("wrong: s/cret")
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
        found |= {os.environ.get(name, "") for name in self.password_in}
        found |= {unquote(secret) for secret in found}
        return sorted(filter(None, found), key=len, reverse=True)
