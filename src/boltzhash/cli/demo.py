"""The demo: learn from the docstrings of this Python, answer questions, and keep a collection."""

from __future__ import annotations

import time
from pathlib import Path

from boltzhash.collection import Collection
from boltzhash.collection.sqlite.database import DATABASE
from boltzhash.corpus import Document
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.hashers import CorrSH, Hasher
from boltzhash.search import snippet
from boltzhash.search.finder import CANDIDATES, Finder

QUESTIONS = (
    "open a zip archive",
    "eigenvalues of a symmetric matrix",
    "read a csv file",
    "test whether two samples have equal means",
    "wait for a thread to finish",
)
SHOWN = 5


def run_demo(queries: list[str], output: Path) -> None:
    """Fit, index, and answer the five questions and any others, printing as it goes.

    The collection in the folder ``output`` is made, or used again where it is of these docstrings.
    """
    start = time.monotonic()
    documents = [_with_metadata(document) for document in docstring_corpus()]
    print(f"{len(documents)} docstrings read in {time.monotonic() - start:.0f} s", flush=True)
    hasher = _kept_hasher(documents, output)

    start = time.monotonic()
    codes = hasher.transform(document.text for document in documents)
    finder = Finder(hasher, codes, [document.id for document in documents], _docstring_line)
    print(
        f"{len(codes)} documents in {codes.nbytes} bytes of codes, "
        f"encoded in {time.monotonic() - start:.1f} s"
    )
    print("\nrank, Hamming distance, name, snippet")
    for query in [*QUESTIONS, *queries]:
        _show(finder, query, documents)
    print(
        f"\n{output} keeps it as a collection. To search it in a browser: boltzhash serve {output}"
    )


def _with_metadata(document: Document) -> Document:
    """The demo's documents have names such as scipy.stats.norm, which say where they come from."""
    package, *inner = str(document.id).split(".")
    library = package if package in ("numpy", "scipy", "sklearn") else "python"
    module = ".".join([package, *inner[:1]]) if library != "python" else package
    words = len(document.text.split())
    return document._replace(metadata={"library": library, "module": module, "words": words})


def _kept_hasher(documents: list[Document], output: Path) -> Hasher:
    """The model of the collection in ``output``, which is made first where it is not there."""
    if not (output / DATABASE).is_file():
        start = time.monotonic()
        hasher = CorrSH(n_bits=64, verbose=True).fit(document.text for document in documents)
        print(f"64-bit codes learned in {time.monotonic() - start:.0f} s", flush=True)
        Collection.create(output, hasher).close()
    with Collection.open(output) as collection:
        if len(collection) == 0 or collection.unfinished() is not None:
            collection.add_resumably(documents, "demo")
        if list(collection) != documents:
            raise FileExistsError(
                f"{output} is a collection of something else, or of another Python: delete it, or "
                "give another folder with --output"
            )
        return collection.hasher


def _docstring_line(text: str, query: str) -> str:
    """A line of the docstring: the name in words before it is what the id says already."""
    return snippet(text.split("\n\n", 1)[1], query)


def _show(finder: Finder, query: str, documents: list[Document]) -> None:
    """The nearest codes, and the same neighbourhood in the order of its words."""
    by_code = finder.find([query], SHOWN, corpus=lambda: documents)[0]
    by_words = finder.find([query], SHOWN, rerank_from=CANDIDATES, corpus=lambda: documents)[0]
    print(f"\n{by_code}")
    print(f"  the nearest {CANDIDATES} reranked by their words:")
    print("\n".join(str(by_words).splitlines()[1:]), flush=True)
