"""Filters: search only among the documents whose metadata fit.

    python filters.py

A filter holds before the cut at k: if k documents fit, k are found. docs/filters.md has all that a
filter can say.
"""

import tempfile
from typing import Any

from boltzhash import ITQ, Collection
from boltzhash.corpus.docstrings import docstring_corpus

documents = [
    {
        "id": document.id,
        "text": document.text,
        "metadata": {
            "package": str(document.id).partition(".")[0],
            "words": len(document.text.split()),
            "about": {"parts": str(document.id).split(".")},
        },
    }
    for document in docstring_corpus()[::3]
]
hasher = ITQ(n_bits=64).fit(document["text"] for document in documents)

filters: list[dict[str, Any]] = [
    {},
    {"package": "numpy"},
    {"package": ["csv", "json", "pickle"]},
    {"words": {"<": 30}},
    {"package": {"!=": "numpy"}, "words": {">=": 100, "<": 200}},
    {"$or": [{"package": {"contains": "zip"}}, {"about.parts": "reader"}]},
    {"$not": {"package": ["numpy", "scipy"]}, "words": {">": 20}},
]

with Collection.create(tempfile.mkdtemp(prefix="boltzhash-"), hasher) as library:
    library.add(documents)
    for where in filters:
        print(f"where={where}")
        for hit in library.search("read values from a file", k=3, where=where):
            assert hit.document is not None  # a collection has its documents
            assert hit.document.metadata is not None
            print(f"{hit.score:>6.2f}  {hit.id}  {hit.document.metadata['words']} words")
