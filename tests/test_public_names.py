"""``boltzhash`` itself: its public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import boltzhash
from boltzhash.hashers import HASHERS


def modules_after(statement: str) -> set[str]:
    """What a fresh Python has imported after the statement."""
    script = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_every_public_name_is_there_and_listed() -> None:
    for name in boltzhash.__all__:
        assert getattr(boltzhash, name) is not None
        assert name in dir(boltzhash)


def test_every_hasher_is_public() -> None:
    for name, kind in HASHERS.items():
        assert name in boltzhash.__all__
        assert getattr(boltzhash, name) is kind


def test_a_star_imports_every_public_name() -> None:
    names: dict[str, object] = {}
    exec("from boltzhash import *", names)
    assert set(boltzhash.__all__) <= names.keys()


def test_importing_boltzhash_imports_no_room() -> None:
    loaded = modules_after("import boltzhash")
    assert {"boltzhash", "boltzhash.version"} == {m for m in loaded if m.startswith("boltzhash")}
    assert "numpy" not in loaded


def test_a_name_imports_what_it_needs_and_no_more() -> None:
    loaded = modules_after("from boltzhash import ExactIndex")
    assert "boltzhash.hashers" not in loaded
    assert "numpy" in loaded
    assert "boltzhash.collection" not in modules_after("from boltzhash import SemanticHasher, load")
    assert "boltzhash.hashers" not in modules_after("from boltzhash import read_corpus")
    needless = {"torch", "sklearn", "faiss"}
    assert not needless & modules_after("from boltzhash import *")


def test_rooms_are_attributes() -> None:
    assert "boltzhash.errors" in modules_after("import boltzhash; boltzhash.errors.ModelError")


@pytest.mark.parametrize("name", ["Collections", "_hashers", "__main__"])
def test_other_names_are_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'boltzhash' has no attribute '{name}'"):
        getattr(boltzhash, name)
