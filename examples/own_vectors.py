"""Vectors you have already: 4 bytes per document instead of hundreds of floats.

    python own_vectors.py

The vectors here come from latent semantic analysis, so that there is nothing to download. Those of a
sentence transformer are used in the same way: only `embed` changes.
"""

from collections.abc import Sequence
from typing import Any

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from boltzhash import ExactIndex, SemanticHasher, Training
from boltzhash.corpus.docstrings import docstring_corpus

documents = docstring_corpus()[::5]
texts = [document.text for document in documents]
lsa = make_pipeline(
    TfidfVectorizer(stop_words="english"), TruncatedSVD(200, random_state=0), Normalizer()
)
lsa.fit(texts)


def embed(some_texts: Sequence[str]) -> Any:
    """One vector per text, an array of shape (n_texts, 200), each of length 1."""
    return lsa.transform(some_texts)


# Codes are made from the vectors; the words of the texts are what they should speak of.
vectors = embed(texts)
hasher = SemanticHasher(n_bits=32, training=Training(epochs=5)).fit(texts, features=vectors)
codes = hasher.transform(features=vectors)
print(f"{vectors.nbytes:,} bytes of vectors became {codes.nbytes:,} bytes of codes\n")

query = "interpolate between data points"
index = ExactIndex(codes, ids=[document.id for document in documents])
hits = index.search(hasher.transform(features=embed([query])), k=5)
print(query)
for name, distance in zip(hits.ids[0], hits.distances[0], strict=True):
    print(f"{distance:>4}  {name}")
