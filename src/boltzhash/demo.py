"""The demo: learn from the docstrings of this Python, then answer questions about it."""

from __future__ import annotations

import time

from boltzhash.corpus import Document
from boltzhash.docstrings import docstring_corpus
from boltzhash.finder import CANDIDATES, Finder
from boltzhash.hashers import CorrSH
from boltzhash.search import snippet

QUESTIONS = (
    "open a zip archive",
    "eigenvalues of a symmetric matrix",
    "read a csv file",
    "test whether two samples have equal means",
    "wait for a thread to finish",
)
SHOWN = 5


def run_demo(queries: list[str]) -> None:
    """Fit, index, and answer the five questions and any others, printing as it goes."""
    start = time.monotonic()
    documents = docstring_corpus()
    print(f"{len(documents)} docstrings read in {time.monotonic() - start:.0f} s", flush=True)

    start = time.monotonic()
    hasher = CorrSH(n_bits=64, verbose=True).fit(document.text for document in documents)
    print(f"64-bit codes learned in {time.monotonic() - start:.0f} s", flush=True)

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
