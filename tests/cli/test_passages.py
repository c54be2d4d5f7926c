"""``boltzhash index --passages``: from long files to hits that say where to look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boltzhash import Collection, load
from boltzhash.cli.learning import FEWEST
from command_line import Made, refused, search_hits, succeed
from quick_hashers import make_defaults_short
from small_corpus import make_documents, make_records, write_jsonl

FILLER = "The ship has a sail and an anchor. " * 30


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    """Four pages, of which one has a sentence about stars behind 200 words on ships."""
    pages = [FILLER, FILLER + "A star and a planet have an orbit. " + FILLER, FILLER, "A moon."]
    return write_jsonl(
        tmp_path / "manual.jsonl", [{"id": str(i), "text": page} for i, page in enumerate(pages)]
    )


def test_a_hit_is_shown_in_its_best_passage(made: Made, manual: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    succeed("index", made.model, manual, "-o", library, "--passages", 50)
    for way in ([], ["--by", "codes"]):
        hit = search_hits(library, "star and planet", "-k", 1, *way)[0]
        assert (hit["id"], hit["snippet"]) == ("1", "A star and a planet have an orbit.")
        start, end = hit["passage"]["start"], hit["passage"]["end"]
        assert start > 500
        assert end - start < 600
    told = succeed("stats", library, "--check")
    with Collection.open(library) as collection:
        n = collection.stats()["passages"]["passages"]
    assert told.startswith(f"4 documents in {n} passages of about 50 words, ")
    assert json.loads(succeed("stats", library, "--json"))["passages"] == {
        "words": 50,
        "passages": n,
    }
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "more", "text": FILLER}])
    succeed("add", library, more)
    with Collection.open(library) as collection:
        assert collection.stats()["passages"]["passages"] == n + 5


def test_a_model_is_learned_from_passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_defaults_short(monkeypatch, 4)
    texts = [document["text"] for document in make_documents(3 * FEWEST)]
    pages = [" ".join(texts[start : start + 60]) for start in range(0, len(texts), 60)]
    corpus = write_jsonl(
        tmp_path / "pages.jsonl", [{"id": i, "text": page} for i, page in enumerate(pages)]
    )
    succeed("index", corpus, "-o", tmp_path / "library", "--passages", 20)
    with Collection.open(tmp_path / "library") as collection:
        n = collection.stats()["passages"]["passages"]
        assert collection.hasher.fitted_on_.documents == n >= FEWEST
        assert collection.stats()["method"] == "SemanticHasher"


def test_an_interrupted_index_goes_on_with_the_same_passages(
    made: Made, manual: Path, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    with (
        Collection.create(library, load(made.model)) as collection,
        collection.store.write() as transaction,
    ):
        note = {"name": f"index {manual}", "done": 0, "last_id": None}
        transaction.note_unfinished(note)
    message = refused("index", made.model, manual, "-o", library, "--passages", 50)
    assert f"{library} was begun without --passages, got --passages 50" in message


def test_what_cannot_be_cut_is_refused_before_anything_is_learned(
    made: Made, tmp_path: Path
) -> None:
    corpus = write_jsonl(tmp_path / "corpus.jsonl", make_records(5))
    new = tmp_path / "new"
    assert "passages must be an integer of 20 or more" in refused(
        "index", corpus, "-o", new, "--passages", 3
    )
    for model in ([], [made.model]):
        message = refused("index", *model, corpus, "-o", "postgresql://nowhere", "--passages", 50)
        assert "passages are kept in folders only" in message
    assert not new.exists()
