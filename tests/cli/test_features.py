"""Commands with ``--features``: from vectors to hits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boltzhash import CorrSH
from command_line import FIT, names, refused, succeed
from small_corpus import DOCUMENTS, TOPICS, write_jsonl

ON_CPU = (*FIT, "--device", "cpu")


class Files(NamedTuple):
    """A corpus, its vectors, a model of both and its codes; tests only read them."""

    corpus: Path
    vectors: Path
    model: Path
    codes: Path


def vectors_of(topics: list[str], seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    places = 3 * np.eye(3, 6)[[list(TOPICS).index(topic) for topic in topics]]
    return (1 + places + 0.3 * rng.standard_normal((len(topics), 6))).astype(np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("features")
    files = Files(*(folder / n for n in ("corpus.jsonl", "vectors.npy", "model", "codes")))
    records = [dict(document) for document in DOCUMENTS]
    records[7]["text"] = ""  # no word of it is known, and its vector still says what it is
    write_jsonl(files.corpus, records)
    np.save(files.vectors, vectors_of([record["id"].split("-")[0] for record in records], 1))
    given = (files.corpus, "--features", files.vectors)
    succeed("fit", *given, "-o", files.model, *ON_CPU)
    succeed("encode", files.model, *given, "-o", files.codes)
    return files


def test_fit_and_encode_say_what_python_computes(files: Files) -> None:
    records = [json.loads(line) for line in files.corpus.read_text().splitlines()]
    vectors = np.load(files.vectors)
    hasher = CorrSH(16, epochs=20, device="cpu")
    codes = hasher.fit_transform([record["text"] for record in records], features=vectors)
    np.testing.assert_array_equal(np.load(files.codes / "codes.npy"), codes)
    assert np.load(files.codes / "no_known_word.npy").tolist() == []


def test_fit_reports_features_and_words(files: Files, tmp_path: Path) -> None:
    given = ("fit", files.corpus, "--features", files.vectors, "-o", tmp_path / "model", *ON_CPU)
    report = json.loads(succeed(*given, "--json"))
    assert (report["features"], report["words"]) == (6, 36)
    assert "16 bits, 6 features, 36 words" in succeed(*given, "--force")


def test_search_finds_by_the_vectors_of_queries(files: Files, tmp_path: Path) -> None:
    """The queries have no word in common with their topic: the vectors alone say it."""
    np.save(tmp_path / "queries.npy", vectors_of(["kitchen", "sea"], 2))
    queries = ("first query", "second query", "--features", tmp_path / "queries.npy")
    lines = succeed("search", files.model, files.codes, *queries, "--json").splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["known_words"] for answer in answers] == [None, None]
    for answer, topic in zip(answers, ("kitchen", "sea"), strict=True):
        assert sum(hit["id"].startswith(topic) for hit in answer["hits"]) >= 8


def test_counts_that_differ_are_named(files: Files, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.load(files.vectors)[:-1])
    few = ("--features", tmp_path / "few.npy")
    message = "features must have one row per document, in the same order: got 59 rows for 60"
    assert message in refused("fit", files.corpus, *few, "-o", tmp_path / "m", *ON_CPU)
    assert message in refused("encode", files.model, files.corpus, *few, "-o", tmp_path / "c")
    assert names(tmp_path) == ["few.npy"]
    message = refused("search", files.model, files.codes, "query", *few)
    assert "got 59 rows for 1 documents" in message


def test_features_are_asked_for_where_the_model_needs_them(files: Files, tmp_path: Path) -> None:
    for command in (
        ("encode", files.model, files.corpus, "-o", tmp_path / "codes"),
        ("search", files.model, files.codes, "query"),
    ):
        assert "pass features= (--features on the command line)" in refused(*command)


def test_methods_that_take_none_and_files_that_hold_none_are_named(
    files: Files, tmp_path: Path
) -> None:
    output = ("-o", tmp_path / "model")
    given = ("fit", files.corpus, "--features")
    lsh = refused(*given, files.vectors, *output, "--method", "LSH")
    assert "LSH reads only words, got features; methods that take features are CorrSH, NASH" in lsh
    assert "corpus.jsonl: expected an .npy file" in refused(*given, files.corpus, *output)
    assert "none.npy" in refused(*given, tmp_path / "none.npy", *output, code=5)
