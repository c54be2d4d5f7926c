"""Commands with ``--features``: from vectors to hits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boltzhash import SemanticHasher, Training
from boltzhash.collection import Collection
from command_line import FIT, Fitted, names, refused, run, succeed
from quick_hashers import make_defaults_short
from small_corpus import DOCUMENTS, TOPICS, as_jsonl, make_records, write_jsonl
from snapshots import Newest

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
    hasher = SemanticHasher(16, training=Training(epochs=20, device="cpu"))
    codes = hasher.fit_transform([record["text"] for record in records], features=vectors)
    np.testing.assert_array_equal(np.load(files.codes / "codes.npy"), codes)
    assert np.load(files.codes / "no_known_word.npy").tolist() == []


def test_a_cluster_is_not_given_vectors(files: Files, tmp_path: Path) -> None:
    given = (files.model, files.corpus, "--features", files.vectors, "-o", tmp_path / "codes")
    assert "--ray hashes texts, and vectors do not travel" in refused("encode", *given, "--ray")


def test_methods_that_take_none_and_files_that_hold_none_are_named(
    files: Files, tmp_path: Path
) -> None:
    output = ("-o", tmp_path / "model")
    given = ("fit", files.corpus, "--features")
    lsh = refused(*given, files.vectors, *output, "--method", "LSH")
    assert (
        "LSH reads only words, got features; methods that take features are SemanticHasher, " in lsh
    )
    assert "corpus.jsonl: expected an .npy file" in refused(*given, files.corpus, *output)
    assert "none.npy" in refused(*given, tmp_path / "none.npy", *output, code=5)


# Collections


@pytest.fixture(scope="module")
def library(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of the corpus, with the vectors that make its codes; tests only read it."""
    library = tmp_path_factory.mktemp("collection") / "library"
    given = (files.model, files.corpus, "--features", files.vectors)
    report = json.loads(succeed("index", *given, "-o", library, "--json"))
    assert (report["written"], report["documents"]) == (60, 60)
    return library


def ask(*arguments: object, stdin: str = "") -> list[dict[str, Any]]:
    lines = succeed("search", *arguments, "--json", stdin=stdin).splitlines()
    return [json.loads(line) for line in lines]


def test_a_collection_has_the_codes_of_the_vectors(
    files: Files, library: Path, tmp_path: Path
) -> None:
    succeed("export", library, "--codes", "-o", tmp_path / "codes")
    for name in ("codes.npy", "no_known_word.npy"):
        np.testing.assert_array_equal(
            np.load(tmp_path / "codes" / name), np.load(files.codes / name)
        )
    shown = succeed("stats", library, "--check")
    assert "60 documents, 16 bits (SemanticHasher from 6 features)" in shown
    assert "checked: everything is as it was written" in shown
    assert json.loads(succeed("stats", library, "--json"))["features"] == 6
    assert "bit 0" in succeed("explain", library)


def test_vectors_are_searched_for_with_and_without_texts(
    files: Files, library: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "queries.npy", vectors_of(["kitchen", "sea"], 2))
    vectors = ("--features", tmp_path / "queries.npy")
    alone = ask(library, *vectors)
    assert [(answer["by"], answer["query"]) for answer in alone] == [("codes", None)] * 2
    for answer, topic in zip(alone, ("kitchen", "sea"), strict=True):
        assert sum(hit["id"].startswith(topic) for hit in answer["hits"]) >= 8
    as_codes = ask(files.model, files.codes, *vectors)
    for one, other in zip(alone, as_codes, strict=True):
        assert [(h["id"], h["distance"]) for h in one["hits"]] == [
            (h["id"], h["distance"]) for h in other["hits"]
        ]
    both = ask(library, "bread butter", "ship sail", *vectors)
    assert [(answer["by"], answer["query"]) for answer in both] == [
        ("both", "bread butter"),
        ("both", "ship sail"),
    ]
    assert both == ask(library, *vectors, stdin="bread butter\nship sail\n")
    assert both == ask(
        files.model, files.codes, *vectors, "bread butter", "ship sail", "--corpus", files.corpus
    )
    shown = succeed("search", library, *vectors, "-k", 1).splitlines()
    assert shown[::3] == [f"row {i} of {tmp_path / 'queries.npy'}" for i in (0, 1)]
    np.save(tmp_path / "query.npy", vectors_of(["kitchen", "sea"], 2)[0])  # a vector, not a matrix
    assert ask(library, "--features", tmp_path / "query.npy") == alone[:1]


def test_a_text_without_a_vector_is_searched_by_words_and_that_is_said(library: Path) -> None:
    result = run("search", library, "bread", "--json")
    assert result.code == 0
    assert result.err == (
        f"boltzhash: {library} makes codes from vectors: without --features it is searched by words "
        "alone\n"
    )
    answer = json.loads(result.out)
    assert answer["by"] == "words"
    assert {hit["distance"] for hit in answer["hits"]} == {None}
    assert succeed("search", library, "bread", "--by", "words").startswith("bread\n   1 ")
    for by in ("both", "codes"):
        message = refused("search", library, "bread", "--by", by)
        assert "pass features= (--features on the command line), a matrix with 6 columns" in message


def test_documents_like_one_are_found_without_vectors(files: Files, library: Path) -> None:
    (answer,) = ask(library, "--like", "sea-2")
    assert answer["by"] == "both"
    assert sum(hit["id"].startswith("sea") for hit in answer["hits"]) >= 8
    message = refused("search", library, "--like", "sea-2", "--features", files.vectors)
    assert "--like looks for documents like one, got --features as well" in message


def test_a_collection_is_added_to_with_vectors(files: Files, tmp_path: Path) -> None:
    library, more = tmp_path / "library", tmp_path / "more.jsonl"
    given = (files.model, files.corpus, "--features", files.vectors)
    succeed("index", *given, "-o", library)
    write_jsonl(more, [{"id": "sea-new", "text": "", "year": 2020}])
    np.save(tmp_path / "more.npy", vectors_of(["sea"], 3))
    vectors = ("--features", tmp_path / "more.npy")
    assert "pass features= (--features on the command line)" in refused("add", library, more)
    assert "got 60 rows for 1 documents" in refused(
        "add", library, more, "--features", files.vectors
    )
    assert "1 documents written, 61 in total" in succeed("add", library, more, *vectors)
    assert "1 documents written, 61 in total" in succeed("add", library, more, *vectors, "--upsert")
    (answer,) = ask(library, *vectors, "--where", '{"year": 2020}')
    assert [(hit["id"], hit["distance"]) for hit in answer["hits"]] == [("sea-new", 0)]
    assert "a collection keeps no features, so it cannot be rehashed" in refused(
        "rehash", library, files.model
    )


def test_vectors_that_do_not_fit_are_named_and_leave_nothing(
    files: Files, library: Path, fitted: Fitted, tmp_path: Path
) -> None:
    output = ("-o", tmp_path / "library")
    np.save(tmp_path / "wide.npy", np.ones((60, 7)))
    given = (files.model, files.corpus, "--features", tmp_path / "wide.npy")
    assert "features must have 6 columns, as they had in fit, got 7" in refused(
        "index", *given, *output
    )
    assert "pass features= (--features on the command line)" in refused(
        "index", files.model, files.corpus, *output
    )
    message = refused("index", fitted.model, files.corpus, "--features", files.vectors, *output)
    assert "this SemanticHasher was fitted without features and reads words" in message
    assert "leave the bad records out of both files" in refused(
        "index", files.model, files.corpus, "--features", files.vectors, "--skip-bad", *output
    )
    assert names(tmp_path) == ["wide.npy"]
    assert "got 7" in refused("search", library, "--features", tmp_path / "wide.npy")
    assert "got 60 rows for 1 documents" in refused(
        "search", library, "one", "--features", files.vectors
    )
    assert "is a corpus, which is searched with a model of its words" in refused(
        "search", files.corpus, "bread", "--features", files.vectors
    )


def test_an_interrupted_index_resumes_with_the_same_vectors(files: Files, tmp_path: Path) -> None:
    corpus, library = tmp_path / "large.jsonl", tmp_path / "library"
    records = make_records(1100)
    corpus.write_text(as_jsonl(records) + "no json\n")
    vectors = np.random.default_rng(0).standard_normal((1100, 6))
    np.save(tmp_path / "vectors.npy", vectors)
    command = ("index", files.model, corpus, "--features", tmp_path / "vectors.npy", "-o", library)
    assert "line 1101" in refused(*command)
    write_jsonl(corpus, records)
    np.save(tmp_path / "vectors.npy", vectors + 1)
    result = run(*command)
    assert "metadata or features up to number 1023 are no longer those" in result.err
    assert "run the same command with --start-over" in result.err
    np.save(tmp_path / "vectors.npy", vectors)
    result = run(*command)
    assert "resuming after the 1024 documents that are already there" in result.err
    assert "76 documents written, 1100 in total" in result.out
    with Collection.open(library) as opened:
        np.testing.assert_array_equal(
            Newest(opened).rows().codes, opened.hasher.encode(features=vectors)
        )


def test_without_a_model_one_is_learned_from_the_vectors(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_defaults_short(monkeypatch, 4)
    given = (files.corpus, "--features", files.vectors, "--bits", 16, "-o", tmp_path / "library")
    result = run("index", *given)
    assert result.code == 0
    assert "60 documents, codes of 16 bits (SemanticHasher)" in result.out
    assert result.out.endswith('"…" --features QUERY.npy\n')
    with Collection.open(tmp_path / "library") as opened:
        assert opened.stats()["features"] == 6
        codes = opened.hasher.encode(features=np.load(files.vectors))
        np.testing.assert_array_equal(Newest(opened).rows().codes, codes)


def test_questions_are_judged_by_words_where_texts_have_no_code(
    library: Path, tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "queries.jsonl", [{"_id": "q", "text": "bread butter"}])
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tkitchen-1\t1\n")
    files = ("--queries", tmp_path / "queries.jsonl", "--qrels", tmp_path / "qrels.tsv")
    result = run("evaluate", library, *files, "--json")
    assert "they are asked by words alone" in result.err
    assert list(json.loads(result.out)["ways"]) == ["words"]
