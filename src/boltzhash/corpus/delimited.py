"""CSV and TSV: a header row, then one record per row."""

import csv
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.lines import lines_as_they_are, name_of, undecodable, visible
from boltzhash.corpus.records import CorpusError, Fields, Records, Unreadable, check_columns

# The csv module stops at 128 KiB, which documents do exceed. With no limit at all, a quote left
# open would read the rest of the corpus into memory before anyone noticed.
_LONGEST_FIELD = 2**27


def read_csv(path: Path | None, fields: Fields, encoding: str) -> Records:
    """The records of a file whose fields are separated by commas; None is standard input."""
    return _read(path, fields, encoding, ",")


def read_tsv(path: Path | None, fields: Fields, encoding: str) -> Records:
    """The records of a file whose fields are separated by tabs; None is standard input."""
    return _read(path, fields, encoding, "\t")


def _read(path: Path | None, fields: Fields, encoding: str, delimiter: str) -> Records:
    rows = _rows(path, encoding, delimiter)
    line_number, header = next(rows, (0, None))
    if header is None:
        return
    where = f"{name_of(path)}, line {line_number}"
    if isinstance(header, Unreadable):  # without it, nobody knows what the rows mean
        raise CorpusError(f"{where}: {header.problem}")
    check_columns(header, fields, where)
    for line_number, row in rows:
        where = f"{name_of(path)}, line {line_number}"
        if isinstance(row, Unreadable):
            yield row, where
        elif len(row) != len(header):
            problem = f"expected {len(header)} fields (header), got {len(row)}"
            yield Unreadable(problem, delimiter.join(row)), where
        else:
            yield dict(zip(header, row, strict=True)), where


def _rows(
    path: Path | None, encoding: str, delimiter: str
) -> Iterator[tuple[int, list[str] | Unreadable]]:
    """The rows that are not blank, each with the number of the line it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))  # is global: never lower
    reader = csv.reader(lines_as_they_are(path, encoding), delimiter=delimiter, strict=True)
    while True:
        line_number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = (
                f"not a valid row: {error} "
                f"(read up to line {reader.line_num}; is a quote not closed or not doubled?)"
            )
            yield line_number, Unreadable(problem, "")
            continue
        if row:
            yield line_number, _checked(row, encoding, delimiter)


def _checked(row: list[str], encoding: str, delimiter: str) -> list[str] | Unreadable:
    content = delimiter.join(row)
    problem = undecodable(content, encoding)
    if problem is None and "\0" in content:  # the csv module takes it for text
        problem = (
            "expected text, got a NUL byte; is the file binary, or in an encoding such as utf-16?"
        )
    return row if problem is None else Unreadable(problem, visible(content))
