"""Precision of the top 100 by tf-idf cosine, without any hashing: what words alone give.

BOLTZHASH_DATA=... python -m experiments.runs.tfidf_cosine
"""

from __future__ import annotations

import numpy as np

from boltzhash.text.tfidf import unit_rows
from experiments.results.files import write
from experiments.runs.corpora import Corpus, Split, corpus
from experiments.runs.runner import circumstances

TOP = 100
BLOCK = 500


def precision(data: Corpus, queries: Split) -> float:
    """Mean over queries of the share of relevant documents among the nearest; ties by row number."""
    database = unit_rows(data.train.tfidf).T.tocsr()
    rows = unit_rows(queries.tfidf)
    shares = []
    for start in range(0, rows.shape[0], BLOCK):
        cosines = (rows[start : start + BLOCK] @ database).toarray()
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :TOP]
        wanted = queries.labels[start : start + BLOCK]
        hits = (data.train.labels[nearest] & wanted[:, None, :]).any(axis=2)
        shares.append(hits.mean(axis=1))
    return float(np.concatenate(shares).mean())


def main() -> None:
    for name in ("ng20", "reuters", "tmc", "debian"):
        data = corpus(name)
        result = {
            "run": name,
            "corpus": name,
            "val_precision": precision(data, data.val),
            "test_precision": precision(data, data.test),
            "data_sha256": data.sha256,
            **circumstances("cpu"),
        }
        write("tfidf-cosine", result)
        print(name, f"{result['test_precision']:.4f}", flush=True)


if __name__ == "__main__":
    main()
