"""Doctests of files whose library is not installed are left out; tests/integrations/run runs them."""

from __future__ import annotations

from importlib.util import find_spec

LIBRARIES = {
    "integrations/llama_index.py": "llama_index",
    "integrations/haystack.py": "haystack",
    "server/assistants.py": "mcp",
}

collect_ignore = [
    f"src/boltzhash/{path}" for path, library in LIBRARIES.items() if find_spec(library) is None
]
