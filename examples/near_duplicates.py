"""Near-duplicates: which texts of a collection are almost the same, and is a new one there already?

    python near_duplicates.py

Two texts are near-duplicates if they share most of their word trigrams. Of each group one document is
kept, and every other one is near it.
"""

import tempfile

from boltzhash import ITQ, Collection
from boltzhash.corpus.docstrings import docstring_corpus

documents = [d for d in docstring_corpus() if str(d.id).startswith("numpy.")]
hasher = ITQ(n_bits=128).fit(document.text for document in documents)

with Collection.create(tempfile.mkdtemp(prefix="boltzhash-"), hasher) as library:
    library.add(documents)
    with library.snapshot() as now:
        groups = now.duplicates(min_similarity=0.8, keep="longest")
    print(f"{len(documents)} docstrings, {len(groups)} groups of near-duplicates, such as")
    for group in sorted(groups, key=lambda group: len(group.duplicates), reverse=True)[:5]:
        near = [f"{other.id} ({other.similarity:.2f})" for other in group.duplicates[:3]]
        print(f"  {group.kept}: " + ", ".join(near))

    known = library.get("numpy.cumsum")
    assert known is not None  # for the type checker: numpy has it
    incoming = {
        "the same text again": known.text,
        "a sentence more": known.text + "\nThis sentence was added later.",
        "another text": "numpy histogram\n\nCount how many samples fall into each bin.",
    }
    with library.snapshot() as now:
        for what, text in incoming.items():
            print(f"{what}: {'there already' if now.is_duplicate(text) else 'new'}")

    library.delete_duplicates(keep="longest")
    print(f"{len(library)} docstrings are left")
