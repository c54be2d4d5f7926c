"""``boltzhash demo``: learn from the docstrings of this Python, answer questions, keep a collection."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.learning import BITS, INSTEAD, SEED
from boltzhash.cli.opening import is_collection, unfinished_in
from boltzhash.cli.reporting import OK, say
from boltzhash.errors import MissingExtraError

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.corpus import Document
    from boltzhash.hashers import Hasher

QUESTIONS = (
    "open a zip archive",
    "eigenvalues of a symmetric matrix",
    "read a csv file",
    "test whether two samples have equal means",
    "wait for a thread to finish",
)
SHOWN = 5


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="learn from Python's own docstrings and answer questions",
        description="Fit 64-bit codes to the docstrings of this Python (standard library, numpy, "
        "scipy, scikit-learn), then answer five questions and yours. Takes about a minute. What was "
        "learned is kept as a collection, for `boltzhash serve` and the next demo.",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="boltzhash-demo",
        metavar="COLLECTION",
        help="folder to keep (boltzhash-demo)",
    )
    parser.add_argument("queries", metavar="QUERY", nargs="*", help="a question of your own")
    parser.set_defaults(run=demo)


def demo(options: argparse.Namespace) -> int:
    """Fit, index, and answer the five questions and any others, printing as it goes.

    The collection in the folder is made, or reused if it holds these docstrings.
    """
    from boltzhash.corpus.docstrings import docstring_corpus

    output = Path(options.output)
    if not is_collection(str(output)):
        print("learning from the docstrings of this Python: a minute or two, once", flush=True)
    start = time.monotonic()
    documents = [_with_metadata(document) for document in docstring_corpus()]
    print(f"{len(documents)} docstrings read in {time.monotonic() - start:.0f} s", flush=True)
    with _collection_of(documents, output) as collection:
        bits = collection.hasher.n_bits
        print("\nrank, score, name, and a line of the text")
        for query in [*QUESTIONS, *options.queries]:
            print(f"\n{collection.search(query, SHOWN)}", flush=True)
    print(
        f"\n{output} keeps {len(documents)} documents and {len(documents) * bits // 8} bytes of codes\n"
        f'ask it:       boltzhash search {output} "sort a list"\n'
        f"in a browser: boltzhash serve {output}"
    )
    return OK


def _with_metadata(document: Document) -> Document:
    """The demo's documents have names such as scipy.stats.norm, which say where they come from."""
    package, *inner = str(document.id).split(".")
    library = package if package in ("numpy", "scipy", "sklearn") else "python"
    module = ".".join([package, *inner[:1]]) if library != "python" else package
    words = len(document.text.split())
    return document._replace(metadata={"library": library, "module": module, "words": words})


def _learned(texts: list[str]) -> Hasher:
    """SemanticHasher; without torch ITQ, as ``boltzhash index`` does."""
    from boltzhash.hashers import ITQ, SemanticHasher, Text

    try:
        return SemanticHasher(BITS, purpose="questions", verbose=True).fit(texts)
    except MissingExtraError as missing:
        say(f"{missing} for learned codes; {INSTEAD}")
    return ITQ(n_bits=BITS, random_state=SEED, text=Text(stem=True)).fit(texts)


def _collection_of(documents: list[Document], output: Path) -> Collection:
    """The collection in ``output``, made first if it is not there."""
    from boltzhash.collection import Collection
    from boltzhash.errors import NoSuchCollectionError

    try:
        collection = Collection.open(output)
    except NoSuchCollectionError:
        start = time.monotonic()
        hasher = _learned([document.text for document in documents])
        print(f"{BITS}-bit codes learned in {time.monotonic() - start:.0f} s", flush=True)
        collection = Collection.create(output, hasher)
    if len(collection) == 0 or unfinished_in(collection) is not None:
        start = time.monotonic()
        collection.add_resumably(documents, "demo")
        print(f"collection written in {time.monotonic() - start:.1f} s", flush=True)
    if list(collection) != documents:
        raise FileExistsError(
            f"{output} is a collection of something else, or of another Python: delete it, or name "
            "another folder with --output"
        )
    return collection
