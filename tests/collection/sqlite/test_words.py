"""Searching a collection by its words, and by both: against plain Python, whatever happens to it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Text
from boltzhash.collection import Collection
from boltzhash.collection.sqlite import words as word_snapshot
from boltzhash.collection.sqlite.word_files import LIST, WORDS_FOLDER
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.relevance import BESIDE_WEIGHT, agreement
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.fields import term_counts
from boltzhash.text.queries import parsed
from term_lengths import length

VOCABULARY = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor".split()


def documents(n: int, start: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(start)
    return [
        {
            "id": f"doc-{i}",
            "text": " ".join(rng.choice(VOCABULARY, rng.integers(2, 9))),
            "metadata": {"even": i % 2 == 0},
        }
        for i in range(start, start + n)
    ]


@pytest.fixture
def hasher() -> ITQ:
    return ITQ(16, text=Text(max_df=1.0)).fit([document["text"] for document in documents(200)])


@pytest.fixture
def collection(tmp_path: Path, hasher: ITQ) -> Any:
    with Collection.create(tmp_path / "library", hasher) as made:
        yield made


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as soon as there are five documents."""
    monkeypatch.setattr(word_snapshot, "_MANY", 5)


def expected_words(collection: Collection, query: str) -> dict[Any, float]:
    """BM25 of all documents, by id."""
    words, every = Analyzer(), list(collection)
    counted = {i: term_counts(document, words) for i, document in enumerate(every)}
    lengths = [length(counts, words) for counts in counted.values()]
    mean, scores = max(np.mean(lengths), 1e-9), dict.fromkeys(range(len(every)), 0.0)
    asked = parsed(query, words)
    for word, times in asked.terms.items():
        having = [i for i, counts in counted.items() if word in counts]
        weight = times * (BESIDE_WEIGHT if word in asked.beside else 1.0)
        idf = np.log1p((len(every) - len(having) + 0.5) / (len(having) + 0.5))
        for i in having:
            tf, norm = counted[i][word], 1.5 * (0.25 + 0.75 * lengths[i] / mean)
            scores[i] += weight * idf * tf / (tf + norm)
    return {every[i].id: score for i, score in scores.items()}


def check_answer(collection: Collection, query: str) -> None:
    """Every hit has the BM25 of plain counting, and hits are in the order of that."""
    expected = expected_words(collection, query)
    answer = collection.search(query, 10_000, by="words")
    assert {hit.id: hit.words for hit in answer} == pytest.approx(
        {id_: score for id_, score in expected.items() if score}, rel=1e-4
    )
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    assert answer.by == "words"


QUERIES = ["star", "bread and butter", "moon orbit comet star", "doc-7", "unheard"]


@pytest.mark.parametrize("query", QUERIES)
def test_words_are_scored_as_plain_counting_does(collection: Collection, query: str) -> None:
    collection.add(documents(120))
    check_answer(collection, query)


def test_both_is_the_documented_sum(collection: Collection, hasher: ITQ) -> None:
    collection.add(documents(120))
    margins = hasher.margins(["moon orbit bread"])[0]
    answer = collection.search("moon orbit bread", 120, by="both")
    by_words = {hit.id: hit.score for hit in collection.search("moon orbit bread", 120, by="words")}
    codes = np.array([np.frombuffer(hit.code, np.uint8) for hit in answer])
    parts = hasher.weight_beside_words * agreement(margins, codes)
    expected = [by_words.get(hit.id, 0.0) + part for hit, part in zip(answer, parts, strict=True)]
    assert [hit.score for hit in answer] == pytest.approx(expected)
    assert [hit.score for hit in answer] == sorted((hit.score for hit in answer), reverse=True)
    assert len(answer) == 120  # documents without a word of the query are found by their codes
    nearest = {hit.id: hit.distance for hit in collection.search("moon orbit bread", 120)}
    assert {hit.id: hit.distance for hit in answer} == nearest


def test_fewer_hits_are_the_beginning_of_more(collection: Collection) -> None:
    collection.add(documents(300))
    for by in ("words", "both"):
        more = collection.search("moon orbit", 100, by=by).ids
        assert collection.search("moon orbit", 7, by=by).ids == more[:7]


def test_an_exact_id_comes_first(collection: Collection) -> None:
    collection.add(documents(200))
    collection.add([{"id": "Moon", "text": "oven"}, {"id": "moon", "text": "oven"}])
    for id_ in ("doc-7", "doc-77", "doc-177", "Moon", "moon"):
        assert collection.search(id_, 1, by="both").ids == [id_]


def test_a_word_that_the_model_does_not_know_is_found(collection: Collection) -> None:
    collection.add(documents(100))
    collection.add([{"id": "new", "text": "lsblk lists block devices"}])
    for by in ("words", "both"):
        answer = collection.search("lsblk", 5, by=by)
        assert answer.ids == ["new"]
        assert "mean nothing" not in str(answer)


def test_phrases_must_occur_and_excluded_words_must_not(collection: Collection) -> None:
    collection.add(
        {"id": i, "text": text}
        for i, text in enumerate(
            ["bread and butter", "butter and bread", "butter", "bread", "moon bread and butter"]
        )
    )
    for by in ("words", "both"):
        ask = lambda query, by=by: set(collection.search(query, by=by).ids)  # noqa: E731
        assert ask('"bread and butter"') == {0, 4}
        assert ask('"bread and butter" -moon') == {0}
        assert ask('butter -"bread and butter"') <= {1, 2, 3}
        assert {1, 2} <= ask('butter -"bread and butter"')


@pytest.mark.parametrize("query", ["-", '""', "- -", "-moon", "\0", '"'])
def test_a_query_of_operators_alone_is_refused(collection: Collection, query: str) -> None:
    collection.add(documents(30))
    for by in ("words", "both"):
        with pytest.raises(ValueError, match="has no word to search for"):
            collection.search(query, by=by)


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_is_refused(collection: Collection, query: str) -> None:
    for by in ("words", "both", "codes"):
        with pytest.raises(ValueError, match="the query is empty: give a text to search for"):
            collection.search(query, by=by)


@pytest.mark.parametrize("query", ["🙂", "a" * 100_000])
def test_odd_queries_find_nothing_and_break_nothing(collection: Collection, query: str) -> None:
    collection.add(documents(30))
    assert collection.search(query).ids == []
    assert len(collection.search(" ".join(VOCABULARY * 800), 5)) == 5


@pytest.mark.usefixtures("small_segments")
def test_the_index_follows_every_change(
    tmp_path: Path, hasher: ITQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written here and elsewhere, with a file that is written all the time and without."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(word_snapshot, "_ALIKE", 3)
    path = tmp_path / "library"
    with Collection.create(path, hasher) as one, Collection.open(path) as other:
        for step in range(25):
            writer = (one, other)[step % 2]
            writer.upsert(documents(int(rng.integers(1, 12)), start=int(rng.integers(0, 60))))
            writer.delete([f"doc-{i}" for i in rng.integers(0, 60, 3)])
            for reader in (one, other):
                check_answer(reader, QUERIES[step % 4])
        assert (path / WORDS_FOLDER).exists()
        with Collection.open(path) as third:
            check_answer(third, "moon orbit comet star")


def segment_files(path: Path) -> list[Path]:
    return sorted(file for file in (path / WORDS_FOLDER).iterdir() if file.name != LIST)


@pytest.mark.parametrize("which", ["list", "segment"])
@pytest.mark.parametrize(
    "damage", ["cut", "flipped at the end", "flipped", "empty", "gone", "of another collection"]
)
@pytest.mark.usefixtures("small_segments")
def test_a_damaged_file_is_made_again(
    tmp_path: Path, hasher: ITQ, damage: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "one", tmp_path / "other"]
    files = []
    for path, start in zip(paths, (0, 500), strict=True):
        with Collection.create(path, hasher) as made:
            made.add(documents(50, start=start))
        files.append(path / WORDS_FOLDER / LIST if which == "list" else segment_files(path)[0])
    whole = files[0].read_bytes()
    changed = {
        "cut": whole[:-7],
        "flipped at the end": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
        "flipped": whole[:4104] + bytes([whole[4104] ^ 1]) + whole[4105:],
        "empty": b"",
        "of another collection": files[1].read_bytes(),
    }
    files[0].unlink()
    if damage != "gone":
        files[0].write_bytes(changed[damage])
    with Collection.open(paths[0]) as collection:
        check_answer(collection, "moon orbit")
        check_answer(collection, "bread and butter")
    with Collection.open(paths[0]) as collection:  # and it stays mended
        monkeypatch.setattr(DocumentCounter, "segment", None)
        check_answer(collection, "moon orbit")


def test_words_are_filed_by_who_writes_and_not_counted_again(
    tmp_path: Path, hasher: ITQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches of 1,024; what is left over, the first search counts."""
    path = tmp_path / "library"
    with Collection.create(path, hasher) as made:
        made.add(documents(2_100))
    counted = []
    segment = DocumentCounter.segment

    def counting(self: DocumentCounter, places: Any, some: Any) -> Any:
        counted.extend(places)
        return segment(self, places, some)

    monkeypatch.setattr(DocumentCounter, "segment", counting)
    with Collection.open(path) as collection:
        check_answer(collection, "moon orbit")
        assert counted == list(range(2_049, 2_101))
        collection.add(documents(1, start=3_000))
        check_answer(collection, "bread and butter")
        assert counted == list(range(2_049, 2_102))
    assert {file.name.partition("-")[0] for file in segment_files(path)} == {"1024"}


@pytest.mark.usefixtures("small_segments")
def test_segments_that_become_one_leave_no_files_behind(tmp_path: Path, hasher: ITQ) -> None:
    path = tmp_path / "library"
    with Collection.create(path, hasher) as collection:
        for start in range(0, 400, 10):
            collection.add(documents(10, start=start))
        check_answer(collection, "moon orbit")
        found = segment_files(path)
        assert len(found) < 16
        assert sum(int(file.name.partition("-")[0]) for file in found) == 400


@pytest.mark.usefixtures("small_segments")
def test_files_that_another_process_replaced_are_followed(tmp_path: Path, hasher: ITQ) -> None:
    """A reader that knows files by name, but has not opened them, when a writer merges them."""
    path = tmp_path / "library"
    with Collection.create(path, hasher) as writer, Collection.open(path) as reader:
        writer.add(documents(10))
        reader.upsert(documents(1, start=3))  # looks at the files, and opens none
        for start in range(10, 200, 10):
            writer.add(documents(10, start=start))
        check_answer(reader, "moon orbit")
        for start in range(200, 300, 10):
            (writer, reader)[start // 10 % 2].add(documents(10, start=start))
            check_answer((reader, writer)[start // 10 % 2], "bread and butter")


@pytest.mark.usefixtures("small_segments")
def test_files_that_vanish_while_they_are_open_change_nothing(tmp_path: Path, hasher: ITQ) -> None:
    path = tmp_path / "library"
    with Collection.create(path, hasher) as collection:
        collection.add(documents(50))
        check_answer(collection, "moon orbit")
        shutil.rmtree(path / WORDS_FOLDER)
        check_answer(collection, "bread and butter")
        collection.add(documents(50, start=50))
        check_answer(collection, "moon orbit")
        assert (path / WORDS_FOLDER / LIST).exists()
        with Collection.open(path) as other:
            check_answer(other, "moon orbit")


@pytest.mark.usefixtures("small_segments")
def test_files_from_the_future_of_a_database_that_was_put_back_are_not_used(
    tmp_path: Path, hasher: ITQ
) -> None:
    path = tmp_path / "library"
    with Collection.create(path, hasher) as collection:
        collection.add(documents(20))
    before = (path / "collection.sqlite").read_bytes()
    with Collection.open(path) as collection:
        collection.upsert({**documents(1, start=i)[0], "text": "comet"} for i in range(20))
        check_answer(collection, "comet")
    (path / "collection.sqlite").write_bytes(before)  # the same inode
    with Collection.open(path) as collection:
        check_answer(collection, "comet")
        check_answer(collection, "moon orbit")


@pytest.mark.usefixtures("small_segments")
def test_a_copy_of_the_folder_and_a_backup_are_searched(tmp_path: Path, hasher: ITQ) -> None:
    with Collection.create(tmp_path / "library", hasher) as collection:
        collection.add(documents(50))
        collection.backup(tmp_path / "backup")
    shutil.copytree(tmp_path / "library", tmp_path / "copy")
    for name in ("backup", "copy"):
        with Collection.open(tmp_path / name) as copy:
            copy.upsert({**documents(1, start=i)[0], "text": "comet"} for i in range(20))
            check_answer(copy, "comet")
            check_answer(copy, "moon orbit")


@pytest.mark.usefixtures("small_segments")
def test_a_rehash_leaves_the_words_as_they_are(tmp_path: Path, hasher: ITQ) -> None:
    with Collection.create(tmp_path / "library", hasher) as collection:
        collection.add(documents(50))
        collection.upsert(documents(3, start=10))
        collection.rehash(LSH(16, text=Text(max_df=1.0)).fit([d["text"] for d in documents(200)]))
        check_answer(collection, "moon orbit")
        collection.delete(["doc-7"])
        check_answer(collection, "moon orbit")


def test_a_file_of_another_language_is_made_again(tmp_path: Path) -> None:
    texts = ["die Häuser am Meer", "ein Haus im Wald", "der Wald und das Meer"]
    german = LSH(16, text=Text(language="german", max_df=1.0)).fit(texts)
    with Collection.create(tmp_path / "library", german) as collection:
        collection.add({"id": i, "text": text} for i, text in enumerate(texts))
        assert set(collection.search("Häusern", by="words").ids) == {0, 1}
        collection.rehash(LSH(16, text=Text(language=None, max_df=1.0)).fit(texts))
        assert collection.search("Häusern", by="words").ids == []


def test_a_read_only_folder_is_searched(tmp_path: Path, hasher: ITQ) -> None:
    path = tmp_path / "library"
    with Collection.create(path, hasher) as made:
        made.add(documents(50))
    for file in path.iterdir():
        file.chmod(0o555 if file.is_dir() else 0o444)
    path.chmod(0o555)
    try:
        with Collection.open(path) as collection:
            check_answer(collection, "moon orbit")
    finally:
        path.chmod(0o755)


def test_what_cannot_be_asked_is_named(collection: Collection, hasher: ITQ) -> None:
    with pytest.raises(ValueError, match="compares words: search for a text, not for a code"):
        collection.search(hasher.transform(["star"])[0], by="both")
    with pytest.raises(ValueError, match="order is for by='codes', got by='words'"):
        collection.search("star", by="words", order="words")
