"""Near-duplicates: which texts of a collection are almost the same, and is a new one there already?

    python near_duplicates.py

Texts that differ in a few words have codes that differ in a few bits, so groups of them are found
without comparing all pairs of texts.
"""

import tempfile

from boltzhash import ITQ, Collection
from boltzhash.corpus.docstrings import docstring_corpus

RADIUS = 4  # bits of 128: the more, the less alike

documents = [d for d in docstring_corpus() if str(d.id).startswith("numpy.")]
hasher = ITQ(n_bits=128).fit(document.text for document in documents)

with Collection.create(tempfile.mkdtemp(prefix="boltzhash-"), hasher) as library:
    library.add(documents)
    groups = library.duplicates(RADIUS)
    print(f"{len(documents)} docstrings, {len(groups)} groups of near-duplicates, such as")
    for group in sorted(groups, key=len, reverse=True)[:5]:
        print("  " + ", ".join(map(str, group[:4])) + (", ..." if len(group) > 4 else ""))

    known = library.get("numpy.cumsum")
    assert known is not None  # for the type checker: numpy has it
    incoming = {
        "the same text again": known.text,
        "a sentence more": known.text + "\nThis sentence was added later.",
        "another text": "numpy histogram\n\nCount how many samples fall into each bin.",
    }
    for what, text in incoming.items():
        is_there = library.is_duplicate(text, RADIUS)
        print(f"{what}: {'there already' if is_there else 'new'}")
