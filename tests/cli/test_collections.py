"""The commands that make collections, change them and tell what is in them."""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from boltzhash.collection import Collection
from boltzhash.storage.codes import read_codes
from command_line import Made, refused, run, search_hits, succeed
from small_corpus import make_records, write_jsonl
from snapshots import Newest

RECORDS = make_records(60)


def test_index_keeps_the_other_fields_as_metadata(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        assert [document._asdict() for document in collection] == [
            {"id": r["id"], "text": r["text"], "metadata": {"year": r["year"]}} for r in RECORDS
        ]


def test_metadata_can_be_chosen(made: Made, tmp_path: Path) -> None:
    rows = [{**record, "a": 1, "b": [2], "metadata": {"c": 3}} for record in RECORDS[:3]]
    corpus = write_jsonl(tmp_path / "rows.jsonl", rows)
    expected = {"a,year": {"a", "year"}, "": set(), "b": {"b"}}
    for number, (fields, names) in enumerate(expected.items()):
        succeed("index", made.model, corpus, "-o", tmp_path / str(number), "--metadata", fields)
        with Collection.open(tmp_path / str(number)) as collection:
            assert {name for d in collection for name in d.metadata or {}} == names
    succeed("index", made.model, corpus, "-o", tmp_path / "all")
    with Collection.open(tmp_path / "all") as collection:
        assert next(iter(collection)).metadata == {"year": 2000, "a": 1, "b": [2], "c": 3}


def test_index_refuses_what_is_there(made: Made) -> None:
    message = refused("index", made.model, made.corpus, "-o", made.collection, code=5)
    assert "is already a collection: add to it with `boltzhash add`" in message
    assert "another model" in refused("index", made.other, made.corpus, "-o", made.collection)


def test_index_says_which_documents_mean_nothing(made: Made, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "odd.jsonl", [*RECORDS, {"id": "odd", "text": "xyzzy"}])
    result = run("index", made.model, corpus, "-o", tmp_path / "new")
    assert result.err.startswith("boltzhash: 1 documents have no word that the model knows")
    hits = search_hits(tmp_path / "new", "moon", "-k", 99)
    assert [hit["id"] for hit in hits if hit.get("no_known_word")] == ["odd"]


def test_add_and_upsert(made: Made, tmp_path: Path) -> None:
    more = write_jsonl(tmp_path / "more.jsonl", make_records(10, start=60))
    report = json.loads(succeed("add", made.collection, more, "--json"))
    assert (report["written"], report["documents"]) == (10, 70)
    message = refused("add", made.collection, more)
    assert "the id '60' is already in the collection; nothing from its batch was added" in message
    changed = write_jsonl(tmp_path / "changed.jsonl", [{"id": 1, "text": "moon"}])
    succeed("add", made.collection, changed, "--upsert")
    with Collection.open(made.collection) as collection:
        document = collection.get(1)
        assert document is not None
        assert (document.text, len(collection)) == ("moon", 70)


def test_delete(made: Made) -> None:
    report = json.loads(succeed("delete", made.collection, "--json", 1, 2, '"4"', "nobody", "true"))
    assert report == {"deleted": 3, "not_there": 2, "documents": 57}
    assert succeed("delete", made.collection, stdin="5\n\n6\n") == (
        "deleted 2 documents, 55 are left\n"
    )
    with Collection.open(made.collection) as collection:
        assert [id_ for id_ in (1, "2", 3, "4", 5, "6") if id_ in collection] == [3]


def test_stats(made: Made) -> None:
    report = json.loads(succeed("stats", made.collection, "--json"))
    assert (report["documents"], report["bits"], report["method"]) == (60, 32, "ITQ")
    text = succeed("stats", made.collection, "--check")
    assert text.startswith("60 documents, 32 bits (ITQ), generation")
    for name in ("documents", "codes", "index"):
        assert f"{report['bytes_per_document'][name]} per document" in text


def test_stats_check_finds_damage(made: Made) -> None:
    with contextlib.closing(sqlite3.connect(made.collection / "collection.sqlite")) as connection:
        connection.execute("UPDATE documents SET text = 'changed by hand' WHERE id = 7")
        connection.commit()
    succeed("stats", made.collection)
    assert "is damaged: document number 8, id 7" in refused("stats", made.collection, "--check")


def test_rehash(made: Made) -> None:
    report = json.loads(succeed("rehash", made.collection, made.other, "--json"))
    assert report == {"documents": 60, "bits": 64}
    assert json.loads(succeed("stats", made.collection, "--json"))["method"] == "LSH"


def test_backup_and_export_come_back(made: Made, tmp_path: Path) -> None:
    succeed("backup", made.collection, "-o", tmp_path / "backup")
    succeed("export", tmp_path / "backup", "-o", tmp_path / "out.jsonl")
    succeed("index", made.model, tmp_path / "out.jsonl", "-o", tmp_path / "again")
    with Collection.open(made.collection) as one, Collection.open(tmp_path / "again") as other:
        assert list(one) == list(other)
    assert "goes into a new folder" in refused(
        "backup", made.collection, "-o", tmp_path / "backup", code=5
    )


def test_what_is_no_collection(made: Made, tmp_path: Path) -> None:
    for command in (["stats"], ["delete", "1"], ["duplicates"]):
        message = refused(command[0], tmp_path, *command[1:])
        assert f"{tmp_path} is not a collection" in message


def test_export_to_standard_output(made: Made) -> None:
    lines = succeed("export", made.collection, "-o", "-").splitlines()
    with Collection.open(made.collection) as collection:
        assert [json.loads(line)["id"] for line in lines] == [d.id for d in collection]
    assert "leave out --codes" in refused("export", made.collection, "-o", "-", "--codes")


def test_exported_codes_are_those_of_encode(made: Made, tmp_path: Path) -> None:
    succeed("export", made.collection, "--codes", "-o", tmp_path / "codes")
    with Collection.open(made.collection) as collection:
        rows, ids = Newest(collection).rows(), [document.id for document in collection]
        stored = read_codes(tmp_path / "codes", model=collection.hasher.fingerprint())
    np.testing.assert_array_equal(stored.codes, rows.codes)
    assert stored.ids == ids


def test_exported_codes_as_parquet(made: Made, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with Collection.open(made.collection) as collection:
        collection.delete([document.id for document in collection if isinstance(document.id, int)])
        rows, ids = Newest(collection).rows(), [document.id for document in collection]
    assert ids
    succeed("export", made.collection, "--codes", "-o", tmp_path / "codes.parquet")
    table = parquet.read_table(tmp_path / "codes.parquet")
    assert table["id"].to_pylist() == ids
    assert table["code"].to_pylist() == [code.tobytes() for code in rows.codes]


def test_parquet_cannot_hold_ids_of_two_types(made: Made, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    message = refused("export", made.collection, "--codes", "-o", tmp_path / "codes.parquet")
    assert "some ids are strings and some are integers" in message
    assert not (tmp_path / "codes.parquet").exists()


def test_stats_show_drift(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = succeed("stats", made.collection).splitlines()
    assert lines[-1] == "fitting again: cannot be told, 60 documents are too few"
    newer = [{"id": f"new {i}", "text": f"violin cello harp{i}"} for i in range(60)]
    succeed("add", made.collection, write_jsonl(tmp_path / "newer.jsonl", newer), "-q")
    lines = succeed("stats", made.collection).splitlines()
    place = made.collection
    assert lines[-1] == (
        f"fitting again: worth it. boltzhash export {place} -o all.jsonl; boltzhash fit all.jsonl "
        f"--method ITQ --bits 32 --language english -o newer; boltzhash rehash {place} newer"
    )
    facts = json.loads(succeed("stats", made.collection, "--json"))["drift"]
    assert (facts["documents"], facts["is_worth_fitting"]) == (120, True)
    assert facts["unknown_words"] > 0.3 > facts["unknown_words_expected"] == 0
    for command in lines[-1].removeprefix("fitting again: worth it. ").split("; "):
        program, *arguments = shlex.split(command)
        assert program == "boltzhash"
        monkeypatch.chdir(tmp_path)
        succeed(*arguments)
    assert succeed("stats", made.collection).endswith("fitting again: not worth it yet\n")


def test_stats_of_nothing_and_of_damage_say_why_drift_is_not_known(
    made: Made, tmp_path: Path
) -> None:
    with Collection.open(made.collection) as collection:
        hasher = collection.hasher
    Collection.create(tmp_path / "empty", hasher).close()
    assert succeed("stats", tmp_path / "empty").endswith(
        "drift: not known, since there are no documents\n"
    )
    with contextlib.closing(sqlite3.connect(made.collection / "collection.sqlite")) as connection:
        connection.execute("UPDATE documents SET text = 'changed by hand' WHERE id = 7")
        connection.commit()
    assert "drift: not known, since " in succeed("stats", made.collection)
    assert json.loads(succeed("stats", made.collection, "--json"))["drift"] is None


def test_control_characters_do_not_reach_a_terminal(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        collection.add([{"id": "bell\x07 \x1b[2Jid", "text": "moon \x1b[31mred"}])
    for arguments in (("search", made.collection, "bell"), ("delete", made.collection, "\x1b[2J")):
        assert "\x1b" not in succeed(*arguments)
    assert "\x1b" not in refused(
        "search", made.collection, "moon", "--where", '{"a": {"\\u001b": 1}}'
    )


def test_metadata_that_no_record_has_is_pointed_out(made: Made, tmp_path: Path) -> None:
    arguments = ("index", made.model, made.corpus, "-o", tmp_path / "new", "--metadata")
    told = run(*arguments, "year,nope,neither").err
    assert told == "boltzhash: --metadata: no record has a field 'nope', 'neither'\n"
    assert run(*arguments[:3], "-o", tmp_path / "again", "--metadata", "year").err == ""
