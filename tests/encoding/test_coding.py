"""Texts to codes: the fast path against the slow one it replaced, and against any threads and blocks."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from boltzhash import SemanticHasher, threads
from boltzhash.codes import Codes, pack
from boltzhash.hashers.shared import base, inference
from boltzhash.text import counting
from boltzhash.text.counting import PythonCounter
from boltzhash.text.tfidf import unit_rows

QUICK = {"training__epochs": 1, "training__device": "cpu"}


def through_python_and_blas(hasher: SemanticHasher, texts: list[str]) -> Codes:
    """How codes were computed before anything was compiled: the tokenizer, tf-idf, BLAS in float64."""
    assert hasher.tfidf_ is not None
    counts = PythonCounter(hasher.tfidf_.words_, None).count(texts, grow=False)
    weighted = base.sparse.csr_matrix(counts, shape=(len(texts), hasher.n_features_in_))
    weighted.data *= hasher.tfidf_.idf_[weighted.indices]
    w = {name: array.astype(np.float64) for name, array in hasher.weights_.items()}
    x = unit_rows(unit_rows(weighted)) * hasher.recipe()["network"].input_length
    halves = []
    for number in range(2):  # networks of 64 bits

        def own(name: str, number: int = number) -> np.ndarray:
            return np.split(w[name], 2, axis=-1)[number]

        h = np.maximum(x @ own("hidden1.weight") + own("hidden1.bias"), 0)
        h = np.maximum(h @ own("hidden2.weight") + own("hidden2.bias"), 0)
        halves.append(h @ own("heads.location.weight") + own("heads.location.bias") > 0)
    return pack(np.concatenate(halves, axis=1))


@pytest.fixture(scope="module")
def hasher(texts: list[str]) -> SemanticHasher:
    return SemanticHasher(64).set_params(**QUICK).fit([*texts, "ΛΟΓΟΣ λόγος", "机器学习 机器"])


@pytest.mark.parametrize("corpus", ["ng20", "reuters", "tmc"])
def test_codes_of_a_corpus_are_those_of_the_slow_path(data_folder: Path, corpus: str) -> None:
    with gzip.open(data_folder / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    hasher = SemanticHasher(64).set_params(**QUICK).fit(texts[::4])
    codes = hasher.transform(texts)
    expected = through_python_and_blas(hasher, texts)
    assert int(np.bitwise_count(codes ^ expected).sum()) == 0


@pytest.mark.parametrize("n_cpus", [1, 2, 7])
@pytest.mark.parametrize("block", [1, 7, 1024])
def test_threads_and_blocks_change_no_bit(
    hasher: SemanticHasher,
    texts: list[str],
    n_cpus: int,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Locations, not only codes, to the last bit."""
    documents = [*texts, "", "机器学习 star", "nul\0 moon"]
    codes, posterior = hasher.transform(documents), hasher.posterior(documents)
    monkeypatch.setattr(threads, "available_cpus", lambda: n_cpus)
    monkeypatch.setattr(base, "BLOCK", block)
    np.testing.assert_array_equal(hasher.transform(documents), codes)
    again = hasher.posterior(documents)
    for part, expected in zip(again, posterior, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_nothing_compiled_changes_no_bit(
    hasher: SemanticHasher, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, sent = hasher.transform(texts), pickle.dumps(hasher)
    monkeypatch.setattr(counting, "_tokens", None)
    monkeypatch.setattr(inference, "_layers", None)
    plain = pickle.loads(sent)
    assert isinstance(plain.tfidf_._counter, PythonCounter)
    np.testing.assert_array_equal(plain.transform(texts), codes)


def test_blocks_hold_codes_and_known_words(
    hasher: SemanticHasher, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [*texts, "nothing known here"]
    codes, known = hasher.transform(documents), hasher.known_word_counts(documents)
    monkeypatch.setattr(base, "BLOCK", 40)
    blocks = list(hasher.transform_blocks(text for text in documents))
    assert [len(block.codes) for block in blocks] == [40, 40, 11]
    np.testing.assert_array_equal(np.concatenate([b.codes for b in blocks]), codes)
    np.testing.assert_array_equal(np.concatenate([b.known_words for b in blocks]), known)


def test_a_document_that_is_no_text_is_named_across_blocks(
    hasher: SemanticHasher, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "BLOCK", 8)
    with pytest.raises(ValueError, match="document 30 must be a string, got NoneType"):
        hasher.transform([*texts[:30], None])
