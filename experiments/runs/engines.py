"""The same judged questions to a folder and to an engine: what each finds, and where they differ.

    BOLTZHASH_DATA=... python -m experiments.runs.engines postgresql://host/database

Makes collections judged_cran, judged_cisi and so on there, with ITQ of 64 bits fitted
on the documents, and leaves them. Prints a row of docs/retrieval.md for each collection and way of
searching: nDCG@10 and recall@100 of both, how many questions get the same 100 ids in the same order, and
by how much scores differ at most.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from boltzhash import ITQ, Collection
from boltzhash.metrics.asking import HITS
from boltzhash.metrics.retrieval import is_answerable, ndcg, recall
from boltzhash.search.hits import Answer
from experiments.runs.retrieval import COLLECTIONS, Judged, judged

BITS = 64
WAYS = ("words", "both", "codes")


class Compared(NamedTuple):
    """What a folder and an engine gave to the same questions."""

    ndcg: tuple[float, float]
    recall: tuple[float, float]
    n_same: int  # questions with the same ids in the same order
    n_questions: int
    difference: float  # of scores at most, at the same rank

    def __str__(self) -> str:
        figures = [f"{a:.4f}, {b:.4f}".replace("0.", ".") for a, b in (self.ndcg, self.recall)]
        same = f"{self.n_same} of {self.n_questions}"
        return " | ".join([*figures, same, f"{self.difference:.0e}" if self.difference else "0"])


def compare(folder: Collection, engine: Collection, data: Judged, by: str) -> Compared:
    """Ask both every question that somebody could answer."""
    asked = [id_ for id_ in data.questions if is_answerable(data.judgements.get(id_, {}))]
    pairs = [
        tuple(one.search(data.questions[id_], HITS, by=by) for one in (folder, engine))
        for id_ in asked
    ]
    grades = [data.judgements[id_] for id_ in asked]

    def means(measure: str) -> tuple[float, float]:
        function, k = {"ndcg": (ndcg, 10), "recall": (recall, HITS)}[measure]
        of_both = [
            np.mean(
                [function(pair[one].ids, g, k=k) for pair, g in zip(pairs, grades, strict=True)]
            )
            for one in (0, 1)
        ]
        return float(of_both[0]), float(of_both[1])

    n_same = sum(one.ids == other.ids for one, other in pairs)
    differences = [_difference(one, other) for one, other in pairs]
    return Compared(means("ndcg"), means("recall"), n_same, len(pairs), max(differences))


def _difference(one: Answer, other: Answer) -> float:
    scores = [(a.score or 0.0, b.score or 0.0) for a, b in zip(one, other, strict=True)]
    return max((abs(a - b) for a, b in scores), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url", help="of a database, without the name of a collection")
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=COLLECTIONS)
    options = parser.parse_args()
    print("| collection | search by | nDCG@10 | recall@100 | same answers | scores differ by |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.collections:
        data = judged(name)
        hasher = ITQ(BITS, random_state=0).fit([document.text for document in data.documents])
        with (
            TemporaryDirectory() as temporary,
            Collection.create(Path(temporary, "library"), hasher) as folder,
            Collection.create(f"{options.url}#judged_{name}", hasher) as engine,
        ):
            for one in (folder, engine):
                one.add(data.documents)
            for by in WAYS:
                print(f"| {name} | {by} | {compare(folder, engine, data, by)} |", flush=True)


if __name__ == "__main__":
    main()
