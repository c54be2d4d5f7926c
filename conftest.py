"""Doctests of files whose library is not installed are left out; tests/integrations/run runs them."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec

import pytest

LIBRARIES = {
    "integrations/llama_index.py": "llama_index",
    "integrations/haystack.py": "haystack",
    "server/assistants.py": "mcp",
}

collect_ignore = [
    f"src/boltzhash/{path}" for path, library in LIBRARIES.items() if find_spec(library) is None
]


@pytest.fixture(autouse=True)
def _own_folder(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Doctests make temporary folders, which pytest deletes after some runs."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("doctest")))
