"""Corpora as Parquet: row by row, only the columns that are needed."""

import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from boltzhash.corpus import Document, read_corpus
from corpus_files import NO_ID, NO_TEXT, message, write
from small_corpus import write_parquet


def test_parquet(tmp_path: Path) -> None:
    columns = {"id": ["a", "b", "c"], "text": ["x", "é", ""], "more": [[1], [2], None]}
    path = write_parquet(tmp_path / "a.parquet", columns)
    assert list(read_corpus(path)) == [Document("a", "x"), Document("b", "é"), Document("c", "")]


def test_parquet_with_named_columns_over_many_batches_and_row_groups(tmp_path: Path) -> None:
    numbers = list(range(1000))
    columns = {"text": numbers, "key": numbers, "body": [str(n) for n in numbers]}
    path = write_parquet(tmp_path / "a.parquet", columns, row_group_size=300)
    documents = list(read_corpus(path, text_field="body", id_field="key"))
    assert documents == [Document(n, str(n)) for n in numbers]


def test_parquet_without_ids_and_without_rows(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"text": ["x", "y"]})
    assert list(read_corpus(path)) == [Document(0, "x"), Document(1, "y")]
    assert list(read_corpus(write_parquet(tmp_path / "b.parquet", {"text": []}))) == []


def test_parquet_reads_only_the_columns_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"text": ["x"], "id": [1], "vector": [[0.5] * 9]})
    file_class = pytest.importorskip("pyarrow.parquet").ParquetFile
    asked: list[list[str]] = []
    original = file_class.iter_batches

    def spy(self: Any, *arguments: Any, columns: list[str], **options: Any) -> Any:
        asked.append(columns)
        return original(self, *arguments, columns=columns, **options)

    monkeypatch.setattr(file_class, "iter_batches", spy)
    assert list(read_corpus(path)) == [Document(1, "x")]
    assert list(read_corpus(path, id_field="text")) == [Document("x", "x")]
    assert asked == [["id", "text"], ["text"]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"body": ["x"]}, ": expected a field 'text', got the fields: 'body'" + NO_TEXT),
        ({"text": ["x", None]}, ", row 2: field 'text' must be a string, got null"),
        ({"text": [3]}, ", row 1: field 'text' must be a string, got int 3"),
        ({"text": [b"x"]}, ", row 1: field 'text' must be a string, got bytes b'x'"),
    ],
)
def test_a_broken_parquet_record(tmp_path: Path, columns: dict[str, Any], problem: str) -> None:
    assert message(write_parquet(tmp_path / "a.parquet", columns)) == f"a.parquet{problem}"


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        ([1.5, 2.5], "float 1.5; to take"),
        ([1.0, None], "float 1.0: a whole number kept as a float, as pandas does"),
        ([Decimal("1.50")], "Decimal Decimal('1.50'); to take"),
        ([b"x"], "bytes b'x'; to take"),
        ([True], "bool True; to take"),
        ([None, "b"], "null; give each document an id"),
    ],
)
def test_parquet_ids_that_are_not_ids(tmp_path: Path, ids: list[Any], shown: str) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"text": ["x", "y"][: len(ids)], "id": ids})
    expected = f"a.parquet, row 1: field 'id' must be a string or an integer, got {shown}"
    assert message(path).startswith(expected)
    assert message(path, id_field="id").startswith(expected)


def test_parquet_ids_as_strings(tmp_path: Path) -> None:
    columns = {
        "text": ["x", "y"],
        "float": [1.0, 2.5],
        "decimal": [Decimal("1.50"), Decimal("2.00")],
        "binary": [b"ab", "é".encode()],
        "day": [date(2020, 1, 31), date(2020, 2, 1)],
    }
    path = write_parquet(tmp_path / "a.parquet", columns)
    expected = {
        "float": ["1", "2.5"],
        "decimal": ["1.50", "2.00"],
        "binary": ["ab", "é"],
        "day": ["2020-01-31", "2020-02-01"],
    }
    for column, ids in expected.items():
        read = read_corpus(path, id_field=column, id_as_string=True)
        assert [document.id for document in read] == ids


def test_a_parquet_column_that_is_missing(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"text": ["x"], "id": [1]})
    assert message(path, id_field="key") == (
        f"a.parquet: expected a field 'key', got the fields: 'text', 'id'{NO_ID}"
    )
    assert message(path, metadata=["year"]).endswith(
        "name another with metadata= (--metadata on the command line)"
    )


def test_corrupt_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    expected = "a.parquet, row 1: expected intact Parquet data, got: "
    assert message(write(tmp_path / "a.parquet", b"")).startswith(expected)
    assert message(write(tmp_path / "a.parquet", b"PAR1 and no more PAR1")).startswith(expected)


def test_parquet_with_damaged_data(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"text": ["abcdefgh" * 40]}, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36  # after the magic number, before the footer
    write(path, bytes(content))
    assert message(path).startswith("a.parquet, row 1: expected intact Parquet data, got: ")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(ImportError) as raised:
        read_corpus(path)
    assert str(raised.value) == (
        "Parquet needs pyarrow, which is not installed: pip install 'boltzhash[parquet]'"
    )


def test_parquet_memory_does_not_grow_with_a_row_group(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = [f"{number:08}" * 125 for number in range(8000)]
    options = {"row_group_size": len(texts), "compression": "none", "use_dictionary": False}
    path = write_parquet(tmp_path / "a.parquet", {"text": texts}, **options)
    before = pyarrow.total_allocated_bytes()
    most = 0
    for number, document in enumerate(read_corpus(path)):
        assert document == Document(number, texts[number])
        most = max(most, pyarrow.total_allocated_bytes() - before)
    assert 0 < most < 4_000_000
