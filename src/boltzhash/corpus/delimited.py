"""CSV and TSV: a header row, then one record per row."""

import csv
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.lines import text_lines
from boltzhash.corpus.records import CorpusError, Fields, Records, check_columns

# The csv module stops at 128 KiB, which documents do exceed. With no limit at all, a quote left
# open would read the rest of the corpus into memory before anyone noticed.
_LONGEST_FIELD = 2**27


def read_csv(path: Path, fields: Fields, encoding: str) -> Records:
    """The records of a file whose fields are separated by commas."""
    return _read(path, fields, encoding, ",")


def read_tsv(path: Path, fields: Fields, encoding: str) -> Records:
    """The records of a file whose fields are separated by tabs."""
    return _read(path, fields, encoding, "\t")


def _read(path: Path, fields: Fields, encoding: str, delimiter: str) -> Records:
    rows = _rows(path, encoding, delimiter)
    line_number, header = next(rows, (0, None))
    if header is None:
        return
    check_columns(header, fields, f"{path}, line {line_number}")
    for line_number, row in rows:
        where = f"{path}, line {line_number}"
        if len(row) != len(header):
            raise CorpusError(f"{where}: expected {len(header)} fields (header), got {len(row)}")
        yield dict(zip(header, row, strict=True)), where


def _rows(path: Path, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of the line it begins on."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))  # is global: never lower
    reader = csv.reader(_lines_of_text(path, encoding), delimiter=delimiter, strict=True)
    while True:
        line_number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CorpusError(
                f"{path}, line {line_number}: not a valid row: {error} "
                f"(read up to line {reader.line_num}; is a quote not closed or not doubled?)"
            ) from None
        if row:
            yield line_number, row


def _lines_of_text(path: Path, encoding: str) -> Iterator[str]:
    for line_number, line in enumerate(text_lines(path, encoding), start=1):
        if "\0" in line:  # newer csv modules would take it for text
            raise CorpusError(
                f"{path}, line {line_number}: expected text, got a NUL byte; is the file binary, "
                "or in an encoding such as utf-16?"
            )
        yield line
