"""Corpora as JSONL: one document per line, ``{"id", "text", "labels": [...], "split"}``.

``split`` is train, val or test; other fields are ignored.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.corpus import CorpusError
from boltzhash.corpus.jsonl import json_object
from boltzhash.corpus.records import checked_record
from boltzhash.datasets.archives import text_lines
from boltzhash.datasets.labelled import PARTS, Corpus, LabelledDocument, make_corpus


def read_jsonl(path: Path, name: str) -> Corpus:
    """Read the corpus ``name`` from ``path`` (``.jsonl`` or ``.jsonl.gz``), its splits as they are."""
    parts: dict[str, list[LabelledDocument]] = {part: [] for part in PARTS}
    for number, line in text_lines(path):
        if line.strip():
            where = f"{path}, line {number}"
            record = _record(line, where)
            labels = tuple(record["labels"])
            parts[record["split"]].append(LabelledDocument(record["id"], record["text"], labels))
    return make_corpus(name, parts, [path])


def _record(line: str, where: str) -> dict[str, Any]:
    record: dict[str, Any] = dict(checked_record(json_object(line), where))
    for field in ("id", "text"):
        if not isinstance(record.get(field), str):
            raise CorpusError(f"{where}: {field!r} must be a string, got {record.get(field)!r}")
    labels = record.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise CorpusError(f"{where}: 'labels' must be a list of strings, got {labels!r}")
    if record.get("split") not in PARTS:
        raise CorpusError(
            f"{where}: 'split' must be one of {', '.join(PARTS)}, got {record.get('split')!r}"
        )
    return record


def write_jsonl(corpus: Corpus, path: str | Path) -> None:
    """Write a corpus as ``.jsonl.gz``, so that it can be read without the files it was made from.

    Parameters
    ----------
    corpus
        What :func:`~boltzhash.datasets.fetch_corpus` gives.
    path
        Must end with ``.jsonl.gz``. The file appears whole or not at all, and the same corpus always
        gives the same bytes.
    """
    path = Path(path)
    if not path.name.endswith(".jsonl.gz"):
        raise ValueError(f"path must end with .jsonl.gz, got {path}")
    names = np.array(corpus.label_names)
    part_file = path.with_name(path.name + ".part")
    try:
        with part_file.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            for split in PARTS:
                part = getattr(corpus, split)
                for id, text, row in zip(part.ids, part.texts, part.labels, strict=True):
                    record = {"id": id, "text": text, "labels": names[row].tolist(), "split": split}
                    file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        os.replace(part_file, path)
    finally:
        part_file.unlink(missing_ok=True)
