"""Questions and judgements from files: BEIR's and TREC's layouts, and what is wrong with a line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.corpus.judgements import read_judgements, read_questions

BEIR = "query-id\tcorpus-id\tscore\nq1\td 7\t2\nq1\td8\t0\nq2\td7\t1\n"
EXPECTED = {"q1": {"d 7": 2, "d8": 0}, "q2": {"d7": 1}}


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        BEIR,
        BEIR.partition("\n")[2],
        BEIR.replace("\n", "\r\n"),
        "\ufeff" + BEIR,
        "\n" + BEIR.replace("\n", "\n\n"),
        BEIR + "q1\td8\t0\n",  # the same line again
        "q1\t0\td 7\t2\nq1\tQ0\td8\t0\nq2\t0\td7\t1",
    ],
)
def test_layouts_of_judgements(tmp_path: Path, text: str) -> None:
    assert read_judgements(written(tmp_path / "qrels.tsv", text)) == EXPECTED


def test_trecs_columns_are_separated_by_blanks(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels.txt", "301 0  FBIS3-10082 1\n301 0 FBIS3-10169 -2\n")
    assert read_judgements(path) == {"301": {"FBIS3-10082": 1, "FBIS3-10169": -2}}


def test_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv.gz").write_bytes(gzip.compress(BEIR.encode()))
    assert read_judgements(tmp_path / "qrels.tsv.gz") == EXPECTED
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "text": "a"}'))
    assert read_questions(str(tmp_path / "queries.jsonl.gz")) == {"1": "a"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\td7\n", "line 1: expected query, document, grade .*, got 2 columns"),
        ('{"id": "q1"}\n', "line 1: expected query, document, grade .*, got 2 columns"),
        (BEIR + "q3\t0\td7\t1\n", "line 5: expected 3 columns as in the lines before, got 4"),
        (BEIR + "q3\td7\tyes\n", "line 5: expected a grade, a whole number .*, got 'yes'"),
        (BEIR + "q3\td7\tscore\n", "line 5: expected a grade"),
        ("q1\td7\t1.0\n", "line 1: expected a grade, .*, got '1.0'"),
        ("q1\td7\t1000\n", "line 1: expected a grade, a whole number of at most 100"),
        (BEIR + "q1\td8\t1\n", "line 5: expected one grade of the document 'd8' .*, got 1 after 0"),
        (BEIR + "\td8\t1\n", "line 5: expected ids of a query and a document, got an empty one"),
        ("query-id\tcorpus-id\tscore\n", "qrels.tsv: expected lines of query, document, grade"),
        ("", "qrels.tsv: expected lines of query, document, grade"),
    ],
)
def test_wrong_judgements_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "qrels.tsv", text)
    with pytest.raises(CorpusError, match=f"qrels.tsv.*{message.removeprefix('qrels.tsv')}"):
        read_judgements(path)


def test_questions_in_their_order(tmp_path: Path) -> None:
    lines = '{"_id": "b", "text": "second"}\n\n{"id": "a", "_id": "x", "text": "", "n": 1}\n'
    found = read_questions(written(tmp_path / "queries.jsonl", lines))
    assert list(found.items()) == [("b", "second"), ("a", "")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a"}', "line 1: field 'text' must be a string, got null"),
        ('{"id": "a", "text": 5}', "line 1: field 'text' must be a string, got int 5"),
        ('{"text": "a"}', "line 1: expected a field 'id' or '_id', got the fields: 'text'"),
        (
            '{"id": 1.5, "text": "a"}',
            "line 1: field 'id' must be a string or an integer, got float",
        ),
        ('{"_id": true, "text": "a"}', "line 1: field '_id' must be a string or an integer"),
        ('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}', "line 2: .*, got the id '1' again"),
        ('{"id": "a", "text": "\\ud800"}', "line 1: field 'text' must be Unicode"),
        ("q1 what is it", "line 1: not valid JSON"),
        ("\n", "queries.jsonl: expected lines .*, got an empty file"),
    ],
)
def test_wrong_questions_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "queries.jsonl", text)
    with pytest.raises(CorpusError, match=message):
        read_questions(path)


@pytest.mark.parametrize("read", [read_questions, read_judgements])
def test_files_that_are_none(read: type[read_questions], tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="expected a file, got a folder"):
        read(tmp_path)
    with pytest.raises(CorpusError, match="expected a file, got no such path"):
        read(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("name", "n_questions", "n_pairs"),
    [("cran", 225, 1612), ("cisi", 76, 3114), ("npl", 93, 2083), ("scifact", 300, 339)],
)
def test_the_judged_collections(
    data_folder: Path, name: str, n_questions: int, n_pairs: int
) -> None:
    folder = data_folder / "ir" / name
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    questions = read_questions(folder / "queries.jsonl")
    judgements = read_judgements(folder / "qrels.tsv")
    assert len(questions) == n_questions
    assert sum(map(len, judgements.values())) == n_pairs
    assert judgements.keys() <= questions.keys()
