"""The table of docs/install.md weighs every extra that users can install."""

from __future__ import annotations

import re
from pathlib import Path

from boltzhash.cli.installed import required

PAGE = Path(__file__).parents[2] / "docs" / "install.md"


def test_every_extra_is_weighed() -> None:
    weighed = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| \d+ \| \d+\.\d\d \|$", PAGE.read_text(), re.M)
    assert sorted(weighed) == sorted(set(required()) - {""})
