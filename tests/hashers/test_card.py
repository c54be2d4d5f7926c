"""The card of a model says what is true of it, and nothing of the texts it was fitted on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from boltzhash import ITQ, LSH, SemanticHasher, Text, Training, load
from boltzhash.cli.parser import main
from boltzhash.errors import ModelError
from boltzhash.hashers.card import model_card, write_card
from boltzhash.version import __version__


def rows(card: str) -> dict[str, str]:
    """All tables of a card."""
    return dict(re.findall(r"^\| (\S.*?) \| (.*) \|$", card, re.M))


def test_it_says_what_the_model_is(texts: list[str], tmp_path: Path) -> None:
    hasher = ITQ(n_bits=16, text=Text(stem=True)).fit(texts)
    hasher.save(tmp_path / "model")
    path = write_card(tmp_path / "model", corpus="three | topics", license="mit")
    assert path == tmp_path / "model" / "README.md"
    card = path.read_text(encoding="utf-8")
    told = rows(card)
    assert hasher.tfidf_ is not None
    assert told["corpus"] == r"three \| topics"
    assert told["vocabulary"] == (
        f"{len(hasher.tfidf_.words_)} words, english, spellings of a word counted as one"
    )
    assert told["fingerprint"] == f"`{hasher.fingerprint()}`"
    assert told["boltzhash"] == __version__
    assert {name.strip("`") for name in told} >= {*hasher.get_params()} - {"text"}
    assert told["`n_bits`"] == "`16`"
    header = 'license: "mit"\nlibrary_name: boltzhash\ntags: \\["semantic-hashing", .*\\]'
    assert re.match(f"---\n{header}\n---\n\n# ITQ, 16 bits\n", card)
    assert ITQ.reference() in card
    assert "Not measured." in card


def test_the_model_beside_it_is_as_it_was(texts: list[str], tmp_path: Path) -> None:
    hasher = LSH(16).fit(texts)
    hasher.save(tmp_path / "model")
    write_card(tmp_path / "model")
    assert load(tmp_path / "model").fingerprint() == hasher.fingerprint()
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocabulary.json",
    ]


def test_nothing_of_the_texts_is_in_it(tmp_path: Path) -> None:
    secret = ["correcthorse batterystaple", "zebrafinch quokkas", "zebrafinch batterystaple"]
    LSH(16).fit(secret).save(tmp_path / "model")
    card = write_card(tmp_path / "model").read_text(encoding="utf-8")
    assert not [word for text in secret for word in text.split() if word in card]
    assert str(tmp_path) not in card


def test_the_example_in_it_runs(texts: list[str], tmp_path: Path) -> None:
    hasher = LSH(16).fit(texts)
    hasher.save(tmp_path / "model")
    card = write_card(tmp_path / "model").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", card, re.M | re.S)
    names: dict[str, object] = {}
    exec(code.replace("path/to/this/folder", str(tmp_path / "model")), names)
    np.testing.assert_array_equal(names["codes"], hasher.encode(["a text"]))  # type: ignore[arg-type]


def test_models_of_vectors_of_a_matrix_and_with_labels(texts: list[str]) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(texts), 5))
    labels = [["space"], ["food"], ["law"]]
    taught = SemanticHasher(16, training=Training(epochs=2)).fit(
        texts, [labels[i // 30] for i in range(90)], features=vectors
    )
    card = model_card(taught, saved_by="1.0")
    assert rows(card)["codes are made from"] == "vectors of 5 numbers"
    assert rows(card)["labels"] == "3"
    assert "hasher.encode(features=vectors)      # floats (n, 5)" in card
    of_matrix = model_card(LSH(16).fit(np.eye(4) + 1), saved_by="1.0")
    assert rows(of_matrix)["input"] == "a matrix of 4 columns"
    assert "hasher.encode(tfidf)      # a matrix (n, 4)" in of_matrix


def test_how_many_documents(texts: list[str]) -> None:
    hasher = LSH(16, text=Text(stop_words=[f"word{i}" for i in range(2000)])).fit(texts)
    hasher.fitted_on_ = hasher.fitted_on_._replace(documents=12_345)
    told = rows(model_card(hasher, saved_by="1.0"))
    assert told["documents"] == "12,345"
    assert told["`text__stop_words`"] == "2,000 of them"


def test_an_evaluation_is_in_it_as_it_is(texts: list[str]) -> None:
    hasher = LSH(16).fit(texts)
    measured = model_card(hasher, saved_by="1.0", evaluation="agreement 0.5\n```\n")
    assert "## Measured\n\n````text\nagreement 0.5\n```\n````\n\n## Files" in measured


def test_a_card_that_is_there_is_not_lost(texts: list[str], tmp_path: Path) -> None:
    LSH(16).fit(texts).save(tmp_path / "model")
    path = write_card(tmp_path / "model")
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"README\.md is already there"):
        write_card(tmp_path / "model")
    assert path.read_text() == "mine"
    assert write_card(tmp_path / "model", replace=True).read_text().startswith("---\n")
    with pytest.raises(ModelError):
        write_card(tmp_path)


def test_the_command(texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    LSH(16).fit(texts).save(tmp_path / "model")
    measured = tmp_path / "measured.txt"
    measured.write_text("agreement 0.5\n")
    command = ["card", str(tmp_path / "model"), "--corpus", "topics", "--license", "mit"]
    assert main([*command, "--evaluation", str(measured)]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'model' / 'README.md'}\n"
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert rows(card)["corpus"] == "topics"
    assert "```text\nagreement 0.5\n```" in card
    assert main(command) != 0
    assert "replace it with --force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
