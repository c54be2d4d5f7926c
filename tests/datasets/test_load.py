"""fetch_corpus: where it looks, in which order, and what it says where there is nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets import CorpusUnavailableError, fetch_corpus, newsgroups, reuters
from boltzhash.datasets.download import DownloadError, Source

LINE = '{"id": "%s", "text": "%s", "labels": ["x"], "split": "%s"}\n'


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data, an empty cache, and addresses that cannot be reached."""
    monkeypatch.delenv("BOLTZHASH_DATA", raising=False)
    monkeypatch.setenv("BOLTZHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    from boltzhash import datasets

    for name, module in (("reuters", reuters), ("newsgroups", newsgroups)):
        source = Source(module.SOURCE.file, ("http://boltzhash.invalid/x",), module.SOURCE.sha256)
        fields = {**vars(datasets.CORPORA[name]), "source": source}
        monkeypatch.setitem(datasets.CORPORA, name, type(datasets.CORPORA[name])(**fields))


def put(folder: Path, name: str, text: str = "words") -> Path:
    folder.mkdir(exist_ok=True)
    lines = "".join(LINE % (part, text, part) for part in ("train", "val", "test"))
    (folder / f"{name}.jsonl").write_text(lines)
    return folder


def test_argument_then_environment_then_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "cache", "ng20", "of the cache")
    assert fetch_corpus("newsgroups").train.texts == ["of the cache"]
    monkeypatch.setenv("BOLTZHASH_DATA", str(tmp_path / "data"))
    assert fetch_corpus("newsgroups").train.texts == ["of the cache"]
    put(tmp_path / "data", "ng20", "of the environment")
    assert fetch_corpus("newsgroups").train.texts == ["of the environment"]
    put(tmp_path / "mine", "ng20", "of the argument")
    assert fetch_corpus("newsgroups", tmp_path / "mine").train.texts == ["of the argument"]
    files = fetch_corpus("newsgroups", str(tmp_path / "mine")).files
    assert files == (tmp_path / "mine" / "ng20.jsonl",)


def test_a_given_folder_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "cache", "reuters")
    put(tmp_path / "mine", "ng20")
    with pytest.raises(CorpusUnavailableError) as caught:
        fetch_corpus("reuters", tmp_path / "mine")
    assert str(caught.value) == (
        "the corpus reuters was not found: expected reuters.jsonl.gz, or reuters21578.tar.gz "
        f"(Reuters-21578, SGML), in {tmp_path / 'mine'}"
    )


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("reuters", ["reuters.jsonl.gz", "reuters21578.tar.gz", "no answer", "not been tried"]),
        ("debian", ["debian.jsonl.gz", "Packages", "Translation-en", "/var/lib/apt/lists"]),
    ],
)
def test_what_is_nowhere_says_which_file_goes_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: list[str]
) -> None:
    monkeypatch.setenv("BOLTZHASH_DATA", str(tmp_path / "data"))
    with pytest.raises(CorpusUnavailableError) as caught:
        fetch_corpus(name)
    for part in [*files, f"in {tmp_path / 'data'} or {tmp_path / 'cache'}"]:
        assert part in str(caught.value)


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"name must be one of 'reuters', 'newsgroups', .* got 'ng'"
    ):
        fetch_corpus("ng")
    with pytest.raises(
        CorpusUnavailableError, match=r"data must be a folder, got .*none, which is no"
    ):
        fetch_corpus("tmc", tmp_path / "none")


def test_original_files_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "tmc"
    folder.mkdir(parents=True)
    row = ",".join(["1"] + ["-1"] * 21) + "\n"
    for texts, labels, n in (
        ("TrainingData.txt", "TrainCategoryMatrix.csv", 10),
        ("TestData.txt", "TestTruth.csv", 2),
    ):
        (folder / texts).write_text("".join(f"{i}~text {i}.\n" for i in range(n)))
        (folder / labels).write_text(row * n)
    for data in (folder, folder.parent):
        corpus = fetch_corpus("tmc", data)
        assert (len(corpus.train), len(corpus.val), len(corpus.test)) == (9, 1, 2)
    (folder / "TestTruth.csv").unlink()
    with pytest.raises(CorpusError, match=r"but TestTruth\.csv is not there"):
        fetch_corpus("tmc", folder)


def test_archives_in_the_cache_are_checked(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "20news-bydate.tar.gz").write_bytes(b"something else")
    with pytest.raises(DownloadError, match=hashlib.sha256(b"something else").hexdigest()):
        fetch_corpus("newsgroups")
    (tmp_path / "cache").rename(
        tmp_path / "mine"
    )  # what is not in the cache may be another version
    with pytest.raises(CorpusError, match="expected an intact tar archive"):
        fetch_corpus("newsgroups", tmp_path / "mine")


@pytest.mark.parametrize(
    ("name", "sizes", "n_labels"),
    [
        ("reuters", (8631, 1079, 1079), 90),
        ("newsgroups", (11293, 3764, 3764), 20),
        ("tmc", (9480, 1185, 1184), 22),
    ],
)
def test_benchmark_files(
    data_folder: Path, name: str, sizes: tuple[int, ...], n_labels: int
) -> None:
    corpus = fetch_corpus(name, data_folder)
    assert (len(corpus.train), len(corpus.val), len(corpus.test)) == sizes
    assert len(corpus.label_names) == n_labels
    assert all(part.labels.any(axis=1).all() for part in (corpus.train, corpus.val, corpus.test))


def test_benchmark_labels_are_those_of_the_matrices(data_folder: Path) -> None:
    """Reuters as texts and as VDSH's file: the same documents in the same order."""
    from boltzhash.datasets.vdsh import load_mat

    corpus = fetch_corpus("reuters", data_folder)
    matrices = load_mat(data_folder / "reuters.tfidf.mat")
    for part, split in zip((corpus.train, corpus.val, corpus.test), matrices, strict=True):
        together = part.labels.astype(int).T @ split.labels
        assert np.sort(together.max(axis=1)).tolist() == np.sort(part.labels.sum(axis=0)).tolist()
