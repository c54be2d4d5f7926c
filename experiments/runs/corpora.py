"""The corpora of the experiments as tf-idf with labels, and the checksum of what they come from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.datasets import Corpus as LabelledTexts
from boltzhash.datasets import fetch_corpus
from boltzhash.datasets.jsonl import read_jsonl
from boltzhash.datasets.vdsh import load_mat
from boltzhash.text.tfidf import TfIdf

# The .mat files hold the splits and the vocabulary that all known figures were measured on.
MAT_FILES = {name: f"{name}.tfidf.mat" for name in ("ng20", "reuters", "tmc")}
# Texts, with the words that RBSH's published code keeps; tf-idf from train alone.
RBSH_WORDS: dict[str, Any] = {
    "language": None,
    "token_pattern": r"\b\w\w+\b",
    "max_words": 1_000_000,
    "min_df": 3,
    "max_df": 0.9,
}
FROM_TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "debian": ("debian", {}),
    "ng20-rbsh": ("newsgroups", RBSH_WORDS),
    "tmc-rbsh": ("tmc", RBSH_WORDS),
}
TITLES = "stackoverflow"  # titles of questions, in JSONL alone
HEADLINES = "headlines"  # of reuters: the first line of each text
CORPORA = (*MAT_FILES, *FROM_TEXTS, TITLES, HEADLINES)


class Split(NamedTuple):
    """tf-idf and labels (bool, a column a label) of some documents."""

    tfidf: sparse.csr_matrix
    labels: NDArray[np.bool_]


class Corpus(NamedTuple):
    """Database and queries."""

    train: Split
    val: Split
    test: Split
    sha256: str


@cache
def corpus(name: str) -> Corpus:
    """One of ``CORPORA``, from the folder that BOLTZHASH_DATA names."""
    if name not in CORPORA:
        raise SystemExit(f"unknown corpus {name!r}: one of {', '.join(CORPORA)}")
    if "BOLTZHASH_DATA" not in os.environ:
        raise SystemExit("set BOLTZHASH_DATA to the folder with the corpora (docs/datasets.md)")
    folder = Path(os.environ["BOLTZHASH_DATA"])
    if name in MAT_FILES:
        return _from_mat(folder / MAT_FILES[name])
    if name == TITLES:
        return _from_parts(read_jsonl(folder / f"{TITLES}.jsonl.gz", TITLES), {})
    if name == HEADLINES:
        return _from_parts(_first_lines(fetch_corpus("reuters", data=folder)), {})
    known, words = FROM_TEXTS[name]
    return _from_parts(fetch_corpus(known, data=folder), words)


def _from_mat(path: Path) -> Corpus:
    data = load_mat(path)
    train, val, test = (
        Split(part.tfidf, part.labels > 0) for part in (data.train, data.val, data.test)
    )
    return Corpus(train, val, test, checksum([path]))


def _from_parts(texts: LabelledTexts, words: dict[str, Any]) -> Corpus:
    """Vocabulary and weights from train, as a user's corpus would get them."""
    tfidf = TfIdf(**words)
    train = Split(tfidf.fit_transform(texts.train.texts), texts.train.labels)
    val, test = (
        Split(tfidf.transform(part.texts), part.labels) for part in (texts.val, texts.test)
    )
    return Corpus(train, val, test, checksum(texts.files))


def _first_lines(texts: LabelledTexts) -> LabelledTexts:
    parts = {
        name: replace(part, texts=[text.partition("\n")[0] for text in part.texts])
        for name, part in (("train", texts.train), ("val", texts.val), ("test", texts.test))
    }
    return replace(texts, **parts)


def checksum(paths: Iterable[str | Path]) -> str:
    """Of what is in files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()
