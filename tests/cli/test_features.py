"""The command line with --features: real runs, from vectors to hits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from boltzhash import CorrSH
from boltzhash.cli.parser import main

TOPICS = {
    "stars": "star planet moon orbit galaxy comet telescope nebula asteroid eclipse",
    "bread": "bread butter flour oven yeast dough jam salt sugar bake",
    "court": "judge law jury trial verdict lawyer appeal crime witness evidence",
}
FIT = ("--bits", "16", "--epochs", "20", "--device", "cpu")


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
    rng = np.random.default_rng(0)
    topics = [topic for _ in range(20) for topic in TOPICS]
    records = [
        {"id": f"{topic}-{number}", "text": " ".join(rng.choice(TOPICS[topic].split(), 6))}
        for number, topic in enumerate(topics)
    ]
    records[7]["text"] = ""  # no word of it is known, and its vector still says what it is
    files.corpus.write_text("".join(json.dumps(record) + "\n" for record in records))
    np.save(files.vectors, vectors_of(topics, 1))
    given = [str(files.corpus), "--features", str(files.vectors)]
    assert main(["fit", *given, "-o", str(files.model), *FIT]) == 0
    assert main(["encode", str(files.model), *given, "-o", str(files.codes)]) == 0
    return files


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The message of a run that must fail as bad input and print nothing else."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    return err


def test_fit_and_encode_say_what_python_computes(files: Files) -> None:
    records = [json.loads(line) for line in files.corpus.read_text().splitlines()]
    vectors = np.load(files.vectors)
    hasher = CorrSH(16, epochs=20, device="cpu")
    codes = hasher.fit_transform([record["text"] for record in records], features=vectors)
    np.testing.assert_array_equal(np.load(files.codes / "codes.npy"), codes)
    assert np.load(files.codes / "no_known_word.npy").tolist() == []


def test_fit_reports_features_and_words(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["fit", files.corpus, "--features", files.vectors, "-o", tmp_path / "model", *FIT]
    capsys.readouterr()
    assert main([*map(str, given), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["features"], report["words"]) == (6, 30)
    assert main([*map(str, given)]) == 0
    assert "16 bits, 6 features, 30 words" in capsys.readouterr().out


def test_search_finds_by_the_vectors_of_queries(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The queries have no word in common with their topic: the vectors alone say it."""
    np.save(tmp_path / "queries.npy", vectors_of(["bread", "court"], 2))
    capsys.readouterr()
    queries = ["first query", "second query", "--features", str(tmp_path / "queries.npy")]
    assert main(["search", str(files.model), str(files.codes), *queries, "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["known_words"] for answer in answers] == [None, None]
    for answer, topic in zip(answers, ("bread", "court"), strict=True):
        assert sum(hit["id"].startswith(topic) for hit in answer["hits"]) >= 8


def test_counts_that_differ_are_named(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "few.npy", np.load(files.vectors)[:-1])
    few = ["--features", tmp_path / "few.npy"]
    message = "features must have a row for each document, in their order: got 59 rows for 60"
    assert message in refused(capsys, "fit", files.corpus, *few, "-o", tmp_path / "m", *FIT)
    assert message in refused(
        capsys, "encode", files.model, files.corpus, *few, "-o", tmp_path / "c"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.npy"]
    assert "got 59 rows for 1 documents" in refused(
        capsys, "search", files.model, files.codes, "query", *few
    )


def test_features_are_asked_for_where_the_model_needs_them(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        ("encode", files.model, files.corpus, "-o", tmp_path / "codes"),
        ("search", files.model, files.codes, "query"),
    ):
        assert "pass features= (--features on the command line)" in refused(capsys, *command)


def test_methods_that_take_none_and_files_that_hold_none_are_named(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["-o", tmp_path / "model"]
    given = ["fit", files.corpus, "--features"]
    lsh = refused(capsys, *given, files.vectors, *output, "--method", "LSH")
    assert "LSH reads words alone, got features; those who take features are CorrSH, NASH" in lsh
    assert "corpus.jsonl: expected an .npy file" in refused(capsys, *given, files.corpus, *output)
    assert main([*map(str, given), str(tmp_path / "none.npy"), *map(str, output)]) == 5
