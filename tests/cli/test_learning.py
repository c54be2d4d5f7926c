"""``boltzhash index`` without a model: it learns one, and says so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from boltzhash import ITQ, SemanticHasher, load
from boltzhash.cli.learning import FEWEST
from boltzhash.collection import Collection
from boltzhash.collection.sqlite.store import SqliteTransaction
from boltzhash.errors import TrainingError
from boltzhash.training import loop
from command_line import Made, misused, names, refused, run, search_hits, succeed
from quick_hashers import make_defaults_short
from small_corpus import make_documents, make_records, write_jsonl

ENOUGH = make_documents(FEWEST)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """With just as many documents as are learned from."""
    return write_jsonl(tmp_path / "corpus.jsonl", ENOUGH)


@pytest.fixture(autouse=True)
def _short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    make_defaults_short(monkeypatch, 4)


def fitted(location: Path) -> Any:
    with Collection.open(location) as collection:
        return collection.hasher


def test_a_corpus_alone_becomes_a_collection_with_a_model_of_it(
    corpus: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    first, second = succeed("index", corpus, "-o", library).splitlines()
    pattern = rf"{library}: {FEWEST} documents, codes of 64 bits \(SemanticHasher\), [\d.]+ s"
    assert re.fullmatch(pattern, first)
    assert second == f'ask it: boltzhash search {library} "…"'
    assert names(tmp_path) == ["corpus.jsonl", "library"]
    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()]
    assert (
        fitted(library).fingerprint()
        == SemanticHasher(purpose="questions", verbose=True).fit(texts).fingerprint()
    )
    assert search_hits(library, "captain storm", "-k", 1)[0]["id"].startswith("sea-")


def test_what_is_learned_can_be_chosen(corpus: Path, tmp_path: Path) -> None:
    options = ("--bits", 16, "--language", "none", "--seed", 3, "--max-memory", "2GB")
    report = json.loads(succeed("index", corpus, "-o", tmp_path / "library", *options, "--json"))
    assert report.pop("seconds") > 0
    assert report == {
        "collection": str(tmp_path / "library"),
        "written": FEWEST,
        "documents": FEWEST,
        "method": "SemanticHasher",
        "bits": 16,
    }
    params = fitted(tmp_path / "library").get_params()
    assert (params["n_bits"], params["text__language"], params["random_state"]) == (16, None, 3)
    assert "64 MB" in refused("index", corpus, "-o", tmp_path / "new", "--max-memory", "64 MB")
    assert "n_bits must be" in refused("index", corpus, "-o", tmp_path / "new", "--bits", 12)
    assert names(tmp_path) == ["corpus.jsonl", "library"]


def test_a_model_is_not_learned_if_one_is_named(made: Made, tmp_path: Path) -> None:
    for option in (
        ("--bits", 32),
        ("--language", "german"),
        ("--seed", 0),
        ("--max-memory", "1GB"),
        ("--stop-words", made.corpus),
        ("--min-df", 1),
        ("--max-df", 0.5),
    ):
        message = refused("index", made.model, made.corpus, "-o", tmp_path / "new", *option)
        assert message == (
            f"{option[0]} is for a model that is learned here: leave it out, or leave out the model "
            f"{made.model}"
        )
    assert not (tmp_path / "new").exists()


def test_which_words_are_learned_can_be_chosen(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_words = tmp_path / "words.txt"
    stop_words.write_text("moon Star\n  sun\n")
    options = ("--stop-words", stop_words, "--min-df", 3, "--max-df", 0.3)
    library = tmp_path / "library"
    succeed("index", corpus, "-o", library, *options)
    model = fitted(library)
    params = model.get_params()
    assert params["text__stop_words"] == ("moon", "Star", "sun")
    assert (params["text__min_df"], params["text__max_df"]) == (3, 0.3)
    assert not {"moon", "star", "sun"} & set(model.tfidf_.words_)
    with Collection.open(library) as collection:  # as if it had been interrupted
        collection.delete(document.id for document in collection)
    stop_words.write_text("moon")
    message = refused("index", corpus, "-o", library, *options)
    assert f"{library} was begun with --stop-words of 3 words, got of 1 words: give" in message
    gone = refused("index", corpus, "-o", tmp_path / "new", "--stop-words", "gone.txt", code=5)
    assert "gone.txt" in gone
    assert "max_df must be" in refused("index", corpus, "-o", tmp_path / "new", "--max-df", 3)


def test_a_model_comes_before_its_corpus_wherever_the_options_are(
    made: Made, tmp_path: Path
) -> None:
    for number, arguments in enumerate(
        [
            (made.model, made.corpus, "-o", tmp_path / "0"),
            ("-o", tmp_path / "1", made.model, made.corpus),
            (made.model, "-o", tmp_path / "2", made.corpus),
        ]
    ):
        succeed("index", *arguments)
        assert fitted(tmp_path / str(number)).fingerprint() == load(made.model).fingerprint()
    several = ("index", made.model, made.corpus, "-o", tmp_path / "3", "more")
    assert refused(*several) == "more: expected a file or a folder, got no such path"
    misused("index", "-o", tmp_path / "3")


def test_what_is_no_corpus(made: Made, tmp_path: Path) -> None:
    output = ("-o", tmp_path / "new")
    assert "name one after the model" in misused("index", made.model, *output)
    assert "`boltzhash export`" in refused("index", made.collection, *output)
    assert "standard input can be read only once" in refused("index", "-", *output)
    gone = tmp_path / "gone.jsonl"
    assert f"{gone}: expected a file or a folder" in refused("index", gone, *output)
    assert not (tmp_path / "new").exists()


def test_what_is_there_is_not_learned_over(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SemanticHasher, "fit", None)
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1.txt").write_text("years of work")
    assert "was not replaced" in refused("index", corpus, "-o", mine, code=5)
    assert "which is a file" in refused("index", corpus, "-o", corpus, code=5)
    with Collection.create(tmp_path / "library", ITQ(16).fit(d["text"] for d in ENOUGH)) as library:
        library.add(ENOUGH)
    message = refused("index", corpus, "-o", tmp_path / "library", code=5)
    assert "is already a collection: add to it with `boltzhash add`" in message


# Where SemanticHasher cannot be learned


def test_a_few_documents_are_hashed_by_a_linear_method(tmp_path: Path) -> None:
    few = write_jsonl(tmp_path / "few.jsonl", ENOUGH[:-1])
    result = run("index", few, "-o", tmp_path / "library", "--bits", 32)
    assert result.err == (
        f"boltzhash: {few} has {FEWEST - 1} documents, too few to learn codes from; going on with "
        "words, and the codes of ITQ, a linear method\n"
    )
    assert "codes of 32 bits (ITQ)" in result.out
    two = write_jsonl(tmp_path / "two.jsonl", make_records(2))
    assert run("index", two, "-o", tmp_path / "two").code == 0
    assert search_hits(tmp_path / "two", "star planet moon")[0]["id"] == "0"


@pytest.mark.parametrize("n", [3, FEWEST + 1])
def test_nothing_to_learn_from(tmp_path: Path, n: int) -> None:
    corpus = write_jsonl(tmp_path / "corpus.jsonl", [{"text": "a planet"}] * n)
    message = refused("index", corpus, "-o", tmp_path / "library")
    assert f"all {n} documents are the same" in message
    assert names(tmp_path) == ["corpus.jsonl"]


def test_a_fit_that_fails_is_made_up_for(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TrainingError("training collapsed")

    monkeypatch.setattr(SemanticHasher, "_fit_matrix", fails)
    result = run("index", corpus, "-o", tmp_path / "library")
    assert (result.code, result.err) == (
        0,
        "boltzhash: training collapsed; going on with words, and the codes of ITQ, a linear method\n",
    )
    assert names(tmp_path) == ["corpus.jsonl", "library"]


# Interruptions


@pytest.mark.usefixtures("checkpoint_every_epoch")
def test_learning_goes_on_after_an_interruption(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, epochs, train = tmp_path / "library", [], loop._epoch

    def interrupted(*arguments: Any) -> Any:
        epochs.append(arguments[-1])
        if len(epochs) == 3:
            raise KeyboardInterrupt
        return train(*arguments)

    monkeypatch.setattr(loop, "_epoch", interrupted)
    result = run("index", corpus, "-o", library)
    checkpoint = f"{library}.checkpoint"
    assert (result.code, result.out) == (130, "")
    assert f"{checkpoint} keeps what is done; the same command resumes" in result.err
    assert names(tmp_path) == ["corpus.jsonl", "library.checkpoint"]
    assert run("index", corpus, "-o", library).code == 0
    assert len(epochs) == 3 + 2  # two of four were kept
    assert names(tmp_path) == ["corpus.jsonl", "library"]


def test_what_was_learned_is_kept_before_anything_is_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    library = tmp_path / "library"
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "add_resumably", interrupted)
        result = run("index", corpus, "-o", library)
    assert (result.code, result.err) == (
        130,
        f"boltzhash: interrupted: {library} keeps what was learned; the same command resumes where it "
        "stopped\n",
    )
    monkeypatch.setattr(SemanticHasher, "fit", None)
    assert run("index", corpus, "-o", library).code == 0


def test_indexing_goes_on_with_the_model_that_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_documents(1500)
    corpus, library = tmp_path / "corpus.jsonl", tmp_path / "library"
    write_jsonl(corpus, rows)
    add, added = SqliteTransaction.add, []

    def interrupted(*arguments: Any) -> None:
        if added:
            raise KeyboardInterrupt
        added.append(add(*arguments))

    command = ("index", corpus, "-o", library, "--bits", 16, "--seed", 5)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteTransaction, "add", interrupted)
        assert run(*command).code == 130
    monkeypatch.setattr(SemanticHasher, "fit", None)
    message = refused("index", corpus, "-o", library, "--bits", 32)
    assert "was begun with --bits 16, got 32: give the same, or another --output" in message
    result = run(*command, "--json")
    assert result.err == "boltzhash: resuming after the 1024 documents that are already there\n"
    assert json.loads(result.out)["written"] == 1500 - 1024
    with Collection.open(library) as collection:
        assert [document.id for document in collection] == [row["id"] for row in rows]
