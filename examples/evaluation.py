"""Evaluation: how good are codes, and is one method better than another?

    python evaluation.py

Labels are only needed to measure. A found document counts as right if it shares a label with the
query; here the label is the subpackage that a docstring comes from, such as scipy.stats.
"""

import numpy as np

from boltzhash import ITQ, LSH, SemanticHasher, SpectralHashing, Training
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.metrics import evaluate

# The first line of a text is its name, which would give the label away.
documents = [d for d in docstring_corpus() if str(d.id).startswith(("scipy.", "sklearn."))][::2]
texts = [document.text.partition("\n")[2] for document in documents]
subpackages = [".".join(str(document.id).split(".")[:2]) for document in documents]
labels = np.array(subpackages)[:, None] == np.unique(subpackages)  # bool (n_documents, n_labels)

is_query = np.random.default_rng(0).random(len(texts)) < 0.2
queries = [text for text, is_one in zip(texts, is_query, strict=True) if is_one]
database = [text for text, is_one in zip(texts, is_query, strict=True) if not is_one]
print(f"{len(queries)} queries, {len(database)} documents, {labels.shape[1]} labels")

codes = {}
for hasher in (
    SemanticHasher(32, training=Training(epochs=5)),
    ITQ(32),
    SpectralHashing(32),
    LSH(32),
):
    hasher.fit(database)
    codes[type(hasher).__name__] = (hasher.transform(queries), hasher.transform(database))

# A letter beside a figure names a method that it is significantly better than.
print(evaluate(codes, query_labels=labels[is_query], labels=labels[~is_query]))
