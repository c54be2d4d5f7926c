"""Questions and judged answers: BEIR's ``queries.jsonl`` and ``qrels.tsv``, and TREC's qrels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus import jsonl
from boltzhash.corpus.lines import text_encoding, text_lines
from boltzhash.corpus.records import (
    USUAL_FIELDS,
    CorpusError,
    Record,
    check_characters,
    checked_record,
    shown,
)

Questions = dict[str, str]  # id of a question → its text
Judgements = dict[str, dict[str, int]]  # id of a question → id of a document → grade

_ENCODING = text_encoding("utf-8")
_FORMATS = "query, document, grade (BEIR) or query, iteration, document, grade (TREC)"
_GRADE_NAMES = ("score", "grade", "relevance", "rel", "label")  # what headers call the last column
_HIGHEST = 100  # gains are 2^grade - 1


def read_questions(path: str | Path) -> Questions:
    """The questions of a JSONL file, also ``.gz``, in its order: ``{"id" or "_id", "text"}`` per line.

    Other fields are left alone. Ids may be strings or integers; either become strings, since those are
    what judgements name.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "queries.jsonl")
    >>> _ = path.write_text('{"_id": "q1", "text": "how far is the moon"}\\n{"id": 2, "text": "why"}\\n')
    >>> read_questions(path)
    {'q1': 'how far is the moon', '2': 'why'}
    """
    questions: Questions = {}
    for line, where in jsonl.read(_file(path), USUAL_FIELDS, _ENCODING):
        record = checked_record(line, where)
        id_, text = _question_id(record, where), record.get("text")
        if not isinstance(text, str):
            raise CorpusError(f"{where}: field 'text' must be a string, got {shown(text)}")
        check_characters(text, f"{where}: field 'text'")
        if id_ in questions:
            raise CorpusError(f"{where}: expected each question once, got the id {id_!r} again")
        questions[id_] = text
    if not questions:
        raise CorpusError(f'{path}: expected lines {{"id": …, "text": …}}, got an empty file')
    return questions


def _question_id(record: Record, where: str) -> str:
    field = "_id" if "_id" in record and "id" not in record else "id"
    if field not in record:
        fields = ", ".join(map(repr, record)) or "none"
        raise CorpusError(f"{where}: expected a field 'id' or '_id', got the fields: {fields}")
    value = record[field]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise CorpusError(
            f"{where}: field {field!r} must be a string or an integer, got {shown(value)}"
        )
    check_characters(str(value), f"{where}: field {field!r}")
    return str(value)


def read_judgements(path: str | Path) -> Judgements:
    """The grades of a file of judgements, also ``.gz``: what each document is worth to a question.

    Lines have three columns, as in BEIR (query, document, grade; a header may come first), or four, as
    in TREC (query, iteration, document, grade). Columns are separated by tabs, or else by blanks.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "qrels.tsv")
    >>> _ = path.write_text("query-id\\tcorpus-id\\tscore\\nq1\\td7\\t2\\nq1\\td8\\t0\\n")
    >>> read_judgements(path)
    {'q1': {'d7': 2, 'd8': 0}}
    """
    judgements: Judgements = {}
    for columns, where in _rows(_file(path)):
        question, document = columns[0], columns[-2]
        grade = _grade(columns[-1], where)
        known = judgements.setdefault(question, {}).setdefault(document, grade)
        if known != grade:
            raise CorpusError(
                f"{where}: expected one grade of the document {document!r} for the question "
                f"{question!r}, got {grade} after {known}; leave one of the lines out"
            )
    if not judgements:
        raise CorpusError(f"{path}: expected lines of {_FORMATS}, got none")
    return judgements


def _rows(path: Path) -> Iterator[tuple[list[str], str]]:
    """The columns of each line but the header, all of the same number, each with its place."""
    n_columns = 0
    for number, line in enumerate(text_lines(path, _ENCODING), start=1):
        if not line.strip():
            continue
        columns = [c.strip() for c in line.split("\t")] if "\t" in line else line.split()
        where = f"{path}, line {number}"
        is_first, n_columns = not n_columns, n_columns or len(columns)
        if len(columns) not in (3, 4):
            raise CorpusError(
                f"{where}: expected {_FORMATS}, got {len(columns)} columns: {shown(line.strip())}"
            )
        if len(columns) != n_columns:
            raise CorpusError(
                f"{where}: expected {n_columns} columns as in the lines before, got {len(columns)}"
            )
        if is_first and columns[-1].lower() in _GRADE_NAMES:
            continue
        if not columns[0] or not columns[-2]:
            raise CorpusError(f"{where}: expected ids of a query and a document, got an empty one")
        yield columns, where


def _grade(text: str, where: str) -> int:
    """
    >>> _grade("2.5", "qrels.tsv, line 3")
    Traceback (most recent call last):
    ...
    boltzhash.corpus.records.CorpusError: qrels.tsv, line 3: expected a grade, a whole number of at \
most 100 (0: not relevant), got '2.5'; if it is a header, call that column 'score'
    """
    try:
        grade = int(text)
    except ValueError:
        grade = None
    if grade is None or grade > _HIGHEST:
        raise CorpusError(
            f"{where}: expected a grade, a whole number of at most {_HIGHEST} (0: not relevant), got "
            f"{text!r}; if it is a header, call that column 'score'"
        )
    return grade


def _file(path: str | Path) -> Path:
    path = Path(path)
    if not path.exists() or path.is_dir():
        raise CorpusError(
            f"{path}: expected a file, got {'a folder' if path.is_dir() else 'no such path'}"
        )
    return path
