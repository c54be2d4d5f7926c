"""Shards together are the corpus, however it is cut."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError, read_corpus
from boltzhash.corpus.records import Fields
from boltzhash.corpus.shards import RowNumber, plan_shards, read_shard
from small_corpus import write_parquet

RECORDS = [
    {"id": 0, "text": "first"},
    {"id": "b", "text": "zweiter, größer\u2028", "year": 2},
    {"text": "no id"},
    {"id": 3, "text": ""},
    *({"id": f"x{i}", "text": "word " * i} for i in range(20)),
]


def write_jsonl(path: Path, blank: str = "") -> None:
    lines = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
    path.write_text("\n".join([lines[0], blank, *lines[1:]]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("shard_bytes", [1, 7, 30, 31, 100, 10**6])
def test_ranges_of_jsonl_are_the_whole_file(tmp_path: Path, shard_bytes: int) -> None:
    write_jsonl(tmp_path / "corpus.jsonl", blank="  ")
    expected = list(read_corpus(tmp_path / "corpus.jsonl", metadata=True))
    shards = plan_shards([tmp_path / "corpus.jsonl"], shard_bytes)
    found, n = [], 0
    for shard in shards:
        documents = list(read_shard(shard, Fields(metadata=True)))
        for document in documents:
            number = document.id
            found.append(
                document._replace(id=n + number) if isinstance(number, RowNumber) else document
            )
        n += len(documents)
    assert found == expected


def test_the_last_line_may_have_no_end(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "a"}\n{"text": "b"}')
    for shard_bytes in (1, 5, 17, 18, 100):
        shards = plan_shards([tmp_path / "corpus.jsonl"], shard_bytes)
        assert [d.text for shard in shards for d in read_shard(shard)] == ["a", "b"]


def test_row_groups_of_parquet(tmp_path: Path) -> None:
    columns = {"text": [f"text {i}" for i in range(50)], "id": list(range(100, 150))}
    path = write_parquet(tmp_path / "corpus.parquet", columns, row_group_size=7)
    shards = plan_shards([path], shard_bytes=1)
    assert [(shard.start, shard.stop) for shard in shards] == [(i, i + 1) for i in range(8)]
    documents = [d for shard in shards for d in read_shard(shard)]
    assert documents == list(read_corpus(path))
    assert len(plan_shards([path])) == 1


def test_files_that_cannot_be_cut_are_read_whole(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "plain.jsonl")
    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "plain.jsonl").read_bytes()))
    with (tmp_path / "corpus.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text"], ["one\ntwo"], ["three"]])
    (shard,) = plan_shards([packed], shard_bytes=10)
    documents = list(read_shard(shard))
    assert documents == list(read_corpus(packed))
    assert [isinstance(d.id, RowNumber) for d in documents[:4]] == [False, False, True, False]
    (shard,) = plan_shards([tmp_path / "corpus.csv"], shard_bytes=10)
    assert [(d.id, d.text) for d in read_shard(shard)] == [(0, "one\ntwo"), (1, "three")]


def test_folders_and_patterns_are_read_as_by_one_process(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write_jsonl(tmp_path / "1.jsonl")
    write_jsonl(tmp_path / "sub" / "2.jsonl")
    (tmp_path / "broken.jsonl").symlink_to("gone")
    for source in (tmp_path, tmp_path / "**" / "*.jsonl"):
        texts = [d.text for shard in plan_shards([source], 30) for d in read_shard(shard)]
        assert texts == [document.text for document in read_corpus(source)]
        assert len(texts) == 2 * len(RECORDS)
    (tmp_path / "README").write_text("about it")
    with pytest.raises(CorpusError, match="expected files of records or texts, got both"):
        plan_shards([tmp_path])


def test_a_name_tells_what_a_shard_was_made_from(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    write_jsonl(path)
    (shard,) = plan_shards([path])
    names = {shard.name(0, "model", ["text"]), shard.name(0, "other", ["text"])}
    names |= {shard.name(0, "model", ["body"]), shard.name(1, "model", ["text"])}
    path.write_text('{"text": "changed"}\n')
    (changed,) = plan_shards([path])
    assert len(names | {changed.name(0, "model", ["text"])}) == 5


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
    shards = plan_shards([path], shard_bytes=14)
    with pytest.raises(CorpusError, match=r"corpus.jsonl, byte 14: expected utf-8"):
        list(read_shard(shards[1]))
    with pytest.raises(CorpusError, match="no such path"):
        plan_shards([tmp_path / "nothing"])
    with pytest.raises(TypeError, match="put it into a list"):
        plan_shards(str(path))
    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"text": "a"}\n')[:-8])
    (shard,) = plan_shards([packed])
    with pytest.raises(CorpusError, match=r"corpus.jsonl.gz, byte 14: expected intact gzip data"):
        list(read_shard(shard))
    with pytest.raises(CorpusError, match="standard input: expected files"):
        plan_shards(["-"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorpusError, match="nothing to read"):
        plan_shards([tmp_path / "folder"])
