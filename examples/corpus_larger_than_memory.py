"""Larger than memory: fit within a bound, encode as a stream, search codes that lie on the disk.

    python corpus_larger_than_memory.py

The documents come from a generator and are never all there at once. Those here are made up, 40,000 of
them, so that there is nothing to download; put your own reader in place of `read_texts`.
"""

import logging
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from boltzhash import ITQ, ExactIndex
from boltzhash.corpus.docstrings import docstring_corpus

logging.basicConfig(level=logging.INFO, format="%(message)s")  # fit says how large its sample is
path = Path(tempfile.mkdtemp(prefix="boltzhash-"), "codes.bin")
passages = [document.text.split() for document in docstring_corpus()[::5]]


def read_texts() -> Iterator[str]:
    """Half of one docstring and half of another, again and again."""
    random = np.random.default_rng(0)
    for one, other in random.integers(len(passages), size=(40_000, 2)):
        yield " ".join(passages[one][:50] + passages[other][:50])


# All documents decide which words count and how much; the rest is learned from a uniform sample of
# them, as large as the bound allows. A real bound would be larger, such as "4 GB".
hasher = ITQ(n_bits=64).fit(read_texts(), max_memory="700 MB")

with path.open("wb") as file:
    for block in hasher.transform_blocks(read_texts()):  # about a thousand documents at a time
        block.codes.tofile(file)

codes = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, hasher.n_bits // 8)
hits = ExactIndex(codes).search(hasher.transform(["open a compressed file"]), k=5)
print(f"{len(codes):,} codes in {path.stat().st_size:,} bytes; the nearest documents:")
found = dict(zip(hits.ids[0].tolist(), hits.distances[0].tolist(), strict=True))
for row, text in enumerate(read_texts()):
    if row in found:
        print(f"{found[row]:>4}  {row:>5}  {text[:70]}...")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes on Linux
print(f"at most {peak / 1000:.0f} MB of memory were used")
