"""Your own corpus: from a JSONL file to a collection that answers questions.

    python own_corpus.py                                  # some of Python's docstrings, as a file
    python own_corpus.py mine.jsonl "a question" "another"    # one {"id": ..., "text": ...} per line

CSV, TSV, Parquet and a folder of text files are read in the same way.
"""

import json
import sys
import tempfile
from pathlib import Path

from boltzhash import Collection, SemanticHasher, Training, read_corpus
from boltzhash.corpus.docstrings import docstring_corpus

folder = Path(tempfile.mkdtemp(prefix="boltzhash-"))

questions = sys.argv[2:] or ["eigenvalues of a matrix", "open a compressed file"]
if len(sys.argv) > 1:
    corpus = Path(sys.argv[1])
else:
    corpus = folder / "corpus.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for document in docstring_corpus()[::8]:
            file.write(json.dumps({"id": document.id, "text": document.text}) + "\n")

# Documents are read one at a time, so they are read again instead of being kept. Five epochs are
# few, so that you need not wait; leave the argument out for better codes.
hasher = SemanticHasher(n_bits=64, training=Training(epochs=5)).fit(
    document.text for document in read_corpus(corpus)
)
hasher.save(folder / "model")

with Collection.create(folder / "library", hasher) as library:
    n_documents = library.add(read_corpus(corpus, metadata=True))
    print(f"{n_documents} documents of {corpus} are now in {library.location}\n")
    for question in questions:
        print(library.search(question, k=3))
