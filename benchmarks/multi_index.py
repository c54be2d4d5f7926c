"""Are MISH's codes cheaper to search? How many codes a search looks at, beside those of SemanticHasher.

    BOLTZHASH_DATA=... python benchmarks/multi_index.py        # ng20 and tmc, 64 bits; minutes on a GPU

Each method is fitted on train with its defaults; train is searched for the 100 nearest of each document
of test. Multi-index hashing is exact, and looks at the codes that share a near substring of 16 bits with
the query. ``ApproximateIndex`` looks through as many lists as give a recall of .95, measured with the
same queries. What is counted is codes, not seconds: so it does not depend on the machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash import MISH, SemanticHasher
from boltzhash.codes import Codes, hamming
from boltzhash.datasets.vdsh import load_mat
from boltzhash.metrics import precision
from boltzhash.search import ApproximateIndex

RESULT = Path(__file__).parent / "results" / "multi_index.json"
CORPORA = ("ng20", "tmc")
N_BITS, K, RECALL = 64, 100, 0.95
SUBSTRING_BYTES = 2
METHODS: dict[str, Callable[[], Any]] = {
    "SemanticHasher": lambda: SemanticHasher(N_BITS),
    "MISH": lambda: MISH(N_BITS),
    "MISH without its two losses": lambda: MISH(N_BITS, false_positives=0.0, far_neighbours=0.0),
}


def multi_index_shares(queries: Codes, codes: Codes, k: int) -> NDArray[np.float64]:
    """The share of the codes that multi-index hashing looks at, for each query's k nearest.

    The j-th of s substrings is searched within ⌊(ρ − j) / s⌋, ρ the distance of the k-th nearest.
    """
    radius = np.sort(hamming(queries, codes), axis=1)[:, k - 1 : k]
    n_substrings = codes.shape[1] // SUBSTRING_BYTES
    looked_at = np.zeros((len(queries), len(codes)), dtype=bool)
    for j in range(n_substrings):
        part = slice(j * SUBSTRING_BYTES, (j + 1) * SUBSTRING_BYTES)
        within = (radius - j) // n_substrings
        apart = hamming(
            np.ascontiguousarray(queries[:, part]), np.ascontiguousarray(codes[:, part])
        )
        looked_at |= apart <= within
    return np.asarray(looked_at.mean(axis=1))


def list_shares(index: ApproximateIndex, queries: Codes, probes: int) -> NDArray[np.float64]:
    """The share of the codes in the lists that a search of so many lists looks through."""
    lists = index._lists
    sizes = np.array([lists.invlists.list_size(i) for i in range(lists.nlist)])
    _, nearest = lists.quantizer.search(np.ascontiguousarray(queries), min(probes, lists.nlist))
    return np.asarray(sizes[nearest].sum(axis=1) / len(index))


def measured(make: Callable[[], Any], corpus: Any) -> dict[str, float]:
    """What one method's codes cost to search, and what they find."""
    hasher = make().fit(corpus.train.tfidf)
    codes, queries = (hasher.transform(part.tfidf) for part in (corpus.train, corpus.test))
    index = ApproximateIndex(codes, k=K, queries=queries)
    probes = index.probes_for(RECALL)
    found = precision(
        queries, codes, query_labels=corpus.test.labels, labels=corpus.train.labels, k=K
    )
    return {
        "precision": float(found.mean()),
        "radius": float(np.sort(hamming(queries, codes), axis=1)[:, K - 1].mean()),
        "multi_index_share": float(multi_index_shares(queries, codes, K).mean()),
        "probes": probes,
        "lists": int(index._lists.nlist),
        "list_share": float(list_shares(index, queries, probes).mean()),
    }


def main() -> None:
    folder = Path(os.environ["BOLTZHASH_DATA"])
    rows = []
    for name in sys.argv[1:] or CORPORA:
        corpus = load_mat(folder / f"{name}.tfidf.mat")
        for method, make in METHODS.items():
            rows.append({"corpus": name, "method": method, **measured(make, corpus)})
            print(rows[-1], flush=True)
    result = {
        "rows": rows,
        "bits": N_BITS,
        "k": K,
        "recall": RECALL,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(result))


def table(result: dict[str, Any]) -> str:
    """As Markdown."""
    head = [
        f"| {result['bits']} bits, the {result['k']} nearest | precision | their radius | "
        f"looked at, multi-index | looked at, lists, recall {result['recall']:g} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    rows = [
        f"| {row['corpus']}, {row['method']} | {row['precision']:.3f} | {row['radius']:.1f} | "
        f"{row['multi_index_share']:.1%} | {row['list_share']:.1%} |"
        for row in result["rows"]
    ]
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    main()
