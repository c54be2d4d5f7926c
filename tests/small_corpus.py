"""A small corpus with three topics, as texts, as records and as files of every kind."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

TOPICS = {
    "sky": "star planet moon orbit comet telescope galaxy eclipse meteor nebula asteroid sun",
    "kitchen": "bread butter oven flour sugar recipe bake dough salt pepper soup onion",
    "sea": "ship sail anchor harbour captain wave tide mast deck crew voyage storm",
}


def make_documents(n: int, seed: int = 0) -> list[dict[str, str]]:
    """Documents of four to ten words from one topic, the topics in turn."""
    rng = random.Random(seed)
    documents = []
    for number in range(n):
        topic = list(TOPICS)[number % 3]
        words = rng.choices(TOPICS[topic].split(), k=rng.randint(4, 10))
        documents.append({"id": f"{topic}-{number}", "text": " ".join(words) + "."})
    return documents


DOCUMENTS = make_documents(60)


def make_records(n: int, start: int = 0) -> list[dict[str, Any]]:
    """The same with a year, and ids of both kinds: the odd ones integers, the even ones strings."""
    return [
        {"id": i if i % 2 else str(i), "text": document["text"], "year": 2000 + i % 10}
        for i, document in enumerate(make_documents(n, seed=start), start)
    ]


def as_jsonl(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text(as_jsonl(records))
    return path


def write_corpus(kind: str, folder: Path) -> Path:
    """The 60 documents as a file of this kind; as a folder, without their ids."""
    path = folder / f"corpus.{kind}"
    if kind == "jsonl":
        write_jsonl(path, DOCUMENTS)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(as_jsonl(DOCUMENTS).encode()))
    elif kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "text"])
            writer.writeheader()
            writer.writerows(DOCUMENTS)
    elif kind == "parquet":
        columns = {name: [document[name] for document in DOCUMENTS] for name in ("id", "text")}
        write_parquet(path, columns)
    else:
        path.mkdir()
        for number, document in enumerate(DOCUMENTS):
            (path / f"{number:03}.txt").write_text(document["text"])
    return path


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """A Parquet file; the test is skipped where pyarrow is not installed."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path
