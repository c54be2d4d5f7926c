"""The table of formats: what it takes to add one, and that whole files and shards are read alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError, Document, read_corpus
from boltzhash.corpus.formats import FORMATS, Format, Spans, suffix_of
from boltzhash.corpus.records import Fields, Records
from boltzhash.corpus.shards import RowNumber, plan_shards, read_shard


def read_words(path: Path, fields: Fields, encoding: str) -> Records:
    """A format of our own: a document per word."""
    for number, word in enumerate(path.read_text(encoding=encoding).split(), start=1):
        yield {fields.text: word}, f"{path}, word {number}"


def read_some_words(path: Path, fields: Fields, start: int, stop: int) -> Records:
    yield from list(read_words(path, fields, "utf-8"))[start:stop]


@pytest.mark.parametrize(
    ("spans", "n_shards"),
    [(None, 1), (Spans(lambda path, shard_bytes: iter([(0, 2), (2, 3)]), read_some_words), 2)],
)
def test_a_further_format_is_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spans: Spans | None, n_shards: int
) -> None:
    monkeypatch.setitem(FORMATS, ".words", Format(read_words, spans))
    path = tmp_path / "corpus.words"
    path.write_text("one two three")
    assert list(read_corpus(path)) == [Document(0, "one"), Document(1, "two"), Document(2, "three")]
    shards = plan_shards([path])
    assert len(shards) == n_shards
    documents = [document for shard in shards for document in read_shard(shard)]
    assert [document.text for document in documents] == ["one", "two", "three"]
    assert all(isinstance(document.id, RowNumber) for document in documents)


def test_the_message_lists_the_formats_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, ".words", Format(read_words))
    expected = r"expected .*\.tsv, \.words \(also with \.gz\), \.parquet or a folder, .* '\.gz'; "
    with pytest.raises(CorpusError, match=expected):
        suffix_of(Path("corpus.parquet.gz"))


def test_whole_files_and_row_groups_name_the_same_row(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "corpus.parquet"
    parquet.write_table(pyarrow.table({"text": ["a", "b", "c", None]}), path, row_group_size=2)
    expected = r"corpus\.parquet, row 4: field 'text' must be a string, got null"
    with pytest.raises(CorpusError, match=expected):
        list(read_corpus(path))
    _, second = plan_shards([path], shard_bytes=1)
    with pytest.raises(CorpusError, match=expected):
        list(read_shard(second))
