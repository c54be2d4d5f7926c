"""docs/licences.md names every package that boltzhash or one of its extras asks for."""

from __future__ import annotations

import re
from pathlib import Path

from boltzhash.cli.installed import required

PAGE = Path(__file__).parents[2] / "docs" / "licences.md"


def test_every_package_is_listed_with_its_extras() -> None:
    rows = re.findall(
        r"^\| (?!package|---)([\w-]+) \| (?:(`[^|]+`) \| )?[^|]+ \|$", PAGE.read_text(), re.M
    )
    listed = {name: set(re.findall(r"`([\w-]+)`", extras)) for name, extras in rows}
    wanted: dict[str, set[str]] = {}
    for extra, names in required().items():
        for name in names:
            wanted.setdefault(name, set()).update({extra} - {""})
    assert listed == wanted
