"""``boltzhash duplicates``: what it prints, what it deletes, and only when told to twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boltzhash.collection import Collection
from command_line import Made, refused, run, succeed
from small_corpus import write_jsonl
from snapshots import Newest

SENTENCE = [f"word{i}" for i in range(102)]  # a hundred trigrams
EDITED = [*SENTENCE[:50], "edited", *SENTENCE[51:]]  # 97 of 103 in common
TEXTS = {
    "first": " ".join(SENTENCE),
    2: " ".join(SENTENCE).upper() + "!",
    "other": "something else entirely is said here",
    "edited": " ".join(EDITED),
    "longer": " ".join([*SENTENCE, "and", "more"]),  # 100 of 102
    "sibling": " ".join([*SENTENCE[:72], *(f"own{i}" for i in range(30))]),  # 70 of 130
}


@pytest.fixture
def library(made: Made, tmp_path: Path) -> Path:
    corpus = write_jsonl(
        tmp_path / "texts.jsonl", [{"id": id_, "text": text} for id_, text in TEXTS.items()]
    )
    assert run("index", made.model, corpus, "-o", tmp_path / "library").code == 0
    return tmp_path / "library"


def ids_in(library: Path) -> list[object]:
    with Collection.open(library) as collection:
        return [document.id for document in collection]


def test_a_line_a_duplicate_with_its_similarity(library: Path) -> None:
    result = run("duplicates", library)
    assert result.out == "2\t1.000\tfirst\nedited\t0.941\tfirst\nlonger\t0.980\tfirst\n"
    assert result.err.endswith(
        "boltzhash: 1 groups; 3 documents are near-duplicates of one that is kept\n"
    )


def test_json_is_what_python_gives(library: Path) -> None:
    (line,) = succeed("duplicates", library, "--json").splitlines()
    assert json.loads(line) == {
        "kept": "first",
        "duplicates": [
            {"id": 2, "similarity": 1.0},
            {"id": "edited", "similarity": 97 / 103},
            {"id": "longer", "similarity": 100 / 102},
        ],
    }
    with Collection.open(library) as collection:
        ((kept, members),) = Newest(collection).duplicates()
    assert json.loads(line) == {"kept": kept, "duplicates": [m._asdict() for m in members]}


@pytest.mark.parametrize(("keep", "kept"), [("longest", "longer"), ("newest", "longer")])
def test_which_is_kept(library: Path, keep: str, kept: str) -> None:
    (line,) = succeed("duplicates", library, "--keep", keep, "--json").splitlines()
    assert json.loads(line)["kept"] == kept
    others = [member["id"] for member in json.loads(line)["duplicates"]]
    assert others == ["first", 2, "edited"]


def test_the_threshold(library: Path) -> None:
    assert run("duplicates", library, "--min-similarity", "0.99").out == "2\t1.000\tfirst\n"
    found = run("duplicates", library, "--min-similarity", "0.5").out.splitlines()
    assert found[-1] == "sibling\t0.538\tfirst"
    for value in (0, 1.5, "nan"):
        message = refused("duplicates", library, "--min-similarity", value)
        assert "min_similarity must be a number above 0 and at most 1" in message


def test_deleting_is_shown_before_it_is_done(library: Path) -> None:
    before = ids_in(library)
    shown = run("duplicates", library, "--delete")
    assert shown.out == run("duplicates", library).out != ""
    assert "would delete 3 documents: add --yes to delete them" in shown.err
    assert json.loads(succeed("duplicates", library, "--delete", "--json").splitlines()[-1]) == {
        "would_delete": 3
    }
    assert "--yes confirms --delete" in refused("duplicates", library, "--yes")
    assert ids_in(library) == before
    done = run("duplicates", library, "--delete", "--yes")
    assert done.out == shown.out
    assert "deleted 3 documents, 3 are left" in done.err
    assert ids_in(library) == ["first", "other", "sibling"]
    again = succeed("duplicates", library, "--delete", "--yes", "--json")
    assert json.loads(again) == {"deleted": 0, "documents": 3}
