"""What commands take as a corpus, and what they do with records that are none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from boltzhash.collection import Collection
from command_line import Fitted, Made, contents, names, refused, run, run_apart, succeed
from small_corpus import DOCUMENTS, as_jsonl, write_jsonl, write_parquet


@pytest.mark.parametrize("how", ["files", "folder", "pattern"])
def test_several_files_are_one_corpus(fitted: Fitted, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    one = write_jsonl(folder / "1.jsonl", DOCUMENTS[:20])
    two = folder / "2.jsonl.gz"
    two.write_bytes(gzip.compress(as_jsonl(DOCUMENTS[20:]).encode()))
    given: dict[str, list[object]] = {
        "files": [one, two],
        "folder": [folder],
        "pattern": [folder / "*.jsonl*"],
    }
    succeed("encode", fitted.model, *given[how], "-o", tmp_path / "codes")
    assert contents(tmp_path / "codes") == contents(fitted.codes)
    succeed("index", fitted.model, *given[how], "-o", tmp_path / "library")
    with Collection.open(tmp_path / "library") as library:
        assert [document.id for document in library] == [d["id"] for d in DOCUMENTS]


def test_csv_and_gzip_on_standard_input(fitted: Fitted, tmp_path: Path) -> None:
    lines = "\n".join(["id,text", *(f"{d['id']},{d['text']}" for d in DOCUMENTS)])
    arguments = ("encode", fitted.model, "-", "-o", tmp_path / "codes")
    assert "--format csv" in refused(*arguments, stdin=lines)
    succeed(*arguments, "--format", "csv", stdin=lines)
    assert contents(tmp_path / "codes") == contents(fitted.codes)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(lines.encode()))
    with packed.open() as stdin:
        assert run_apart(*arguments, "--format", "csv", stdin=stdin).code == 0
    assert contents(tmp_path / "codes") == contents(fitted.codes)


def test_a_document_a_line(fitted: Fitted, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(document["text"] for document in DOCUMENTS))
    arguments = ("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    assert "--lines" in refused(*arguments)
    succeed(*arguments, "--lines")
    expected = contents(fitted.codes)
    expected["ids.jsonl"] = b"".join(b"%d\n" % number for number in range(60))
    assert contents(tmp_path / "codes") == expected


# Ids


def test_ids_as_strings(fitted: Fitted, tmp_path: Path) -> None:
    columns = {"id": [1.0, 2.5], "text": ["star", "planet"]}
    corpus = write_parquet(tmp_path / "corpus.parquet", columns)
    arguments = ("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    assert "a whole number kept as a float, as pandas does" in refused(*arguments)
    succeed(*arguments, "--id-as-string")
    assert (tmp_path / "codes" / "ids.jsonl").read_text() == '"1"\n"2.5"\n'


@pytest.mark.parametrize("ids", [("b", "b"), (7, 7), (0, None)], ids=str)
def test_an_id_twice_is_refused(fitted: Fitted, tmp_path: Path, ids: tuple[Any, Any]) -> None:
    """Also if one of them is the number of a row."""
    first, second = ids
    records = [{"text": "star"}, *({"id": f"x{i}", "text": "star"} for i in range(3000))]
    records[0] = {"id": second, "text": "star"} if second is not None else records[0]
    records.append({"id": first, "text": "planet"})
    corpus = write_jsonl(tmp_path / "corpus.jsonl", records)
    message = refused("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    assert message == (
        f"the id {first!r} is there twice: documents 0 and 3001 have it (counted from 0). Each "
        "document needs its own"
    )
    assert names(tmp_path) == ["corpus.jsonl"]
    assert repr(first) in refused("index", fitted.model, corpus, "-o", tmp_path / "library")


# Records that are left out

BROKEN = [
    as_jsonl(DOCUMENTS[:30]),
    '{"id": "broken"\n',
    '{"id": "none", "text": null}\n{"id": 1.5, "text": "x"}\n',
    as_jsonl(DOCUMENTS[30:]),
    "[1]\n{no\n",
]
REASONS = (
    "5 records were left out (2 × not valid JSON; 1 × field 'text' must be a string; 1 × field 'id' "
    "must be a string or an integer; 1 × expected a JSON object)"
)


@pytest.mark.parametrize("command", ["fit", "encode", "index", "add"])
def test_bad_records_are_left_out_if_asked_for(
    made: Made, fitted: Fitted, tmp_path: Path, command: str
) -> None:
    corpus = tmp_path / "broken.jsonl"
    corpus.write_text("".join(BROKEN))
    output = made.collection if command == "add" else tmp_path / "output"
    arguments: dict[str, list[object]] = {
        "fit": [corpus, "-o", output, "--method", "LSH", "--bits", 8],
        "encode": [fitted.model, corpus, "-o", output],
        "index": [made.model, corpus, "-o", output],
        "add": [made.collection, corpus],
    }
    assert "line 31: not valid JSON" in refused(command, *arguments[command])
    result = run(command, *arguments[command], "--skip-bad", "--json", "--quiet")
    skipped = Path(f"{output}.skipped.jsonl")
    assert (result.code, result.err) == (0, f"boltzhash: {REASONS}: see {skipped}\n")
    facts = json.loads(result.out)
    assert (facts["skipped"], facts["skipped_to"]) == (5, str(skipped))
    if "documents" in facts:
        assert facts["documents"] == (120 if command == "add" else 60)
    lines = [json.loads(line) for line in skipped.read_text().splitlines()]
    assert [line["where"] for line in lines] == [
        f"{corpus}, line {number}" for number in (31, 32, 33, 64, 65)
    ]
    assert [line["content"] for line in lines] == [
        '{"id": "broken"',
        {"id": "none", "text": None},
        {"id": 1.5, "text": "x"},
        "[1]",
        "{no",
    ]


def test_what_is_left_out_does_not_replace_anything(fitted: Fitted, tmp_path: Path) -> None:
    """Only the file of an earlier run."""
    corpus = tmp_path / "broken.jsonl"
    corpus.write_text('{"text": "star"}\nno\n')
    mine = tmp_path / "codes.skipped.jsonl"
    mine.write_text("mine\n")
    arguments = ("encode", fitted.model, corpus, "-o", tmp_path / "codes", "--skip-bad")
    assert f"{mine} is where --skip-bad writes" in refused(*arguments, code=5)
    assert mine.read_text() == "mine\n"
    mine.unlink()
    for _ in range(2):
        assert run(*arguments).code == 0
        assert len(mine.read_text().splitlines()) == 1


# How much is said


def test_quiet_and_verbose(made: Made, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "corpus.jsonl", [{"text": "star"}, {"text": "unheard"}])
    note = "1 documents have no word that the model knows"
    for number, option in enumerate(["-q", "--quiet"]):
        output = tmp_path / f"quiet {number}"
        assert run("index", made.model, corpus, "-o", output, option).err == ""
        assert run(option, "index", made.model, corpus, "-o", output / "2").err == ""
    assert note in run("index", made.model, corpus, "-o", tmp_path / "usual").err
    said = run("index", made.model, corpus, "-o", tmp_path / "verbose", "-v").err
    assert note in said
    assert f"boltzhash: reading {corpus}\n" in said
