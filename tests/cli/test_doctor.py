"""``boltzhash doctor``: what it finds, what it says to do, and its exit codes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from boltzhash import ITQ, Collection
from boltzhash.cli import doctor, installed
from command_line import Made, refused, run


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def findings(location: object, *, well: bool) -> dict[str, dict[str, Any]]:
    result = run("doctor", location, "--json")
    assert (result.code, result.err) == (0 if well else 1, "")
    facts = json.loads(result.out)
    assert (facts["collection"], facts["well"]) == (str(location), well)
    return {finding["check"]: finding for finding in facts["findings"]}


def test_a_collection_that_is_well(made: Made) -> None:
    found = findings(made.collection, well=True)
    assert list(found) == ["machine", "opening", "disk", "integrity", "words", "drift"]
    assert all(finding["do"] is None for finding in found.values())
    assert found["opening"]["says"].startswith("60 documents, 32 bits (ITQ), format version ")
    assert found["integrity"]["says"] == "everything is as it was written"
    result = run("doctor", made.collection)
    assert result.code == 0
    assert [line[:13] for line in result.out.splitlines()] == [
        *("ok  machine  ", "ok  opening  ", "ok  disk     "),
        *("ok  integrity", "ok  words    ", "ok  drift    "),
    ]


def test_damage_is_found(made: Made) -> None:
    with closing(sqlite3.connect(made.collection / "collection.sqlite")) as database, database:
        database.execute("UPDATE documents SET text = 'something else' WHERE place = 5")
    found = findings(made.collection, well=False)
    assert "is damaged: document number 5" in found["integrity"]["says"]
    assert "boltzhash export" in found["integrity"]["do"]


def test_a_model_that_is_damaged_is_found(made: Made) -> None:
    (weights,) = (made.collection / "models").rglob("model.safetensors")
    weights.write_bytes(b"nonsense")
    found = findings(made.collection, well=False)
    assert list(found) == ["machine", "opening"]
    assert "damaged" in found["opening"]["says"]
    result = run("doctor", made.collection)
    assert "\n              → bring back a backup" in result.out


def test_what_was_interrupted_is_told(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with Collection.open(made.collection) as collection:
        with collection.store.write() as transaction:
            transaction.note_unfinished({"name": "add more.jsonl", "done": 0, "last_id": None})
        with pytest.raises(KeyboardInterrupt):
            collection.rehash(ITQ(16).fit(d.text for d in collection), on_batch=stop)
    found = findings(made.collection, well=False)
    assert found["unfinished"]["says"] == "`add more.jsonl` was interrupted"
    assert found["rehash"]["do"].endswith(
        f"boltzhash rehash {made.collection} MODEL, the same model"
    )


def test_a_disk_without_room(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: Usage(10**6, 10**6 - 500, 500))
    found = findings(made.collection, well=False)
    assert found["disk"]["do"] == "make room: a rehash or a backup needs as much as there is"


def test_documents_whose_words_are_unknown(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        collection.add({"id": f"odd {i}", "text": "xyzzy"} for i in range(4))
    found = findings(made.collection, well=False)
    assert found["words"]["says"] == "4 documents have no word that the model knows"
    assert found["words"]["do"] == "fit again, with these documents"


def test_what_is_not_compiled(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "is_compiled", lambda name: name != "text._tokens")
    found = findings(made.collection, well=False)
    assert "Slower: counting words." in found["machine"]["do"]


def test_what_is_no_collection_is_an_error(tmp_path: Path, made: Made) -> None:
    assert "is not a collection" in refused("doctor", tmp_path)
    shutil.rmtree(made.collection)
    assert "is not a collection" in refused("doctor", made.collection)


def test_a_collection_that_has_drifted_is_to_be_fitted_again(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        collection.add({"id": f"new {i}", "text": f"moon violin cello harp{i}"} for i in range(60))
    found = findings(made.collection, well=False)
    assert found["drift"]["do"].startswith("fitting again: worth it. boltzhash export ")
    assert [check for check, finding in found.items() if finding["do"]] == ["drift"]
