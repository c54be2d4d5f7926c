"""Documents cut into passages, against a plain reference: the best passage of each, by brute force."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import Collection, Hasher
from boltzhash.codes import hamming
from boltzhash.collection.cluster import add_from
from boltzhash.collection.sqlite import codes_following
from boltzhash.collection.sqlite.codes_file import PASSAGES_FILE
from boltzhash.collection.sqlite.database import DATABASE
from boltzhash.collection.sqlite.schema import code_checksum
from boltzhash.errors import CollectionError
from boltzhash.text.passages import Span, cut
from snapshots import Newest

WORDS = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave".split()
PASSAGE = 20  # words

Texts = dict[Any, str]


def long_text(rng: np.random.Generator, most: int = 150) -> str:
    """Sentences of a few words; some documents are one passage, some have ten."""
    n = int(rng.integers(1, most))
    return " ".join(
        word + "." if rng.random() < 0.2 else word for word in rng.choice(WORDS, n).tolist()
    )


def given(texts: Texts) -> list[dict[str, Any]]:
    return [
        {"id": id_, "text": text, "metadata": {"even": id_ % 2 == 0}} for id_, text in texts.items()
    ]


def nearest(texts: Texts, hasher: Hasher, code: Any) -> list[tuple[Any, int, Span]]:
    """All documents by (distance of the best passage, insertion), the first of equal passages."""
    best = []
    for place, (id_, text) in enumerate(texts.items()):
        spans = cut(text, PASSAGE)
        codes = hasher.transform([text[slice(*span)] for span in spans])
        distances = hamming(code[None], codes)[0].tolist()
        best.append((min(distances), place, id_, spans[distances.index(min(distances))]))
    return [(id_, distance, span) for distance, _, id_, span in sorted(best)]


def found(answer: Any) -> list[tuple[Any, int, Span]]:
    return [(hit.id, hit.distance, hit.passage) for hit in answer]


@pytest.fixture
def texts() -> Texts:
    rng = np.random.default_rng(0)
    return {i: long_text(rng) for i in range(60)}


@pytest.fixture
def made(tmp_path: Path, hasher: Hasher, texts: Texts) -> Path:
    with Collection.create(tmp_path / "made", hasher, passages=PASSAGE) as collection:
        collection.add(given(texts))
    return tmp_path / "made"


def check_like(collection: Collection, texts: Texts, hasher: Hasher) -> None:
    """Every way to ask for codes, and the counts."""
    code = hasher.transform(["star planet moon"])[0]
    expected = nearest(texts, hasher, code)
    for k in (1, 7, 1000):
        assert found(collection.search(code, k)) == expected[:k]
    even = [one for one in expected if one[0] % 2 == 0]
    assert found(collection.search(code, 5, where={"even": True})) == even[:5]
    for radius in (0, 2, 8):
        near = [one for one in expected if one[1] <= radius]
        assert found(collection.within(code, radius)) == near
    assert len(collection) == len(texts)
    n_passages = sum(len(cut(text, PASSAGE)) for text in texts.values())
    assert collection.stats()["passages"] == {"words": PASSAGE, "passages": n_passages}
    Newest(collection).check()


@pytest.mark.parametrize("many", [2, 10_000], ids=["mapped", "in memory"])
def test_documents_come_by_their_nearest_passages(
    made: Path, texts: Texts, hasher: Hasher, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes of 8 bits, so that most tie; through overwriting, deleting, adding and reopening."""
    monkeypatch.setattr(codes_following, "_MANY", many)
    rng = np.random.default_rng(1)
    with Collection.open(made) as collection, Collection.open(made) as other:
        check_like(collection, texts, hasher)
        for round_ in range(6):
            changed = {
                int(id_): long_text(rng) for id_ in rng.choice(list(texts), 5, replace=False)
            }
            added = {1000 + 10 * round_ + i: long_text(rng) for i in range(5)}
            collection.upsert(given({**changed, **added}))
            texts.update({**changed, **added})
            gone = [max(texts), *rng.choice(list(texts)[:-1], 3, replace=False).tolist()]
            collection.delete(gone)
            texts = {id_: text for id_, text in texts.items() if id_ not in gone}
            check_like(collection, texts, hasher)
            check_like(other, texts, hasher)
    with Collection.open(made) as collection:
        check_like(collection, texts, hasher)
    assert (made / PASSAGES_FILE).exists() == (many == 2)


def test_a_rehash_makes_new_codes_of_passages_even_if_it_is_interrupted(
    made: Path, texts: Texts, hasher: Hasher, other_hasher: Hasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boltzhash.collection.collection.BATCH", 2)

    def stop(done: int, total: int) -> None:
        if done >= 32:
            raise KeyboardInterrupt

    with Collection.open(made) as collection:
        with pytest.raises(KeyboardInterrupt):
            collection.rehash(other_hasher, on_batch=stop)
        check_like(collection, texts, hasher)
        texts[3], texts[50] = "star " * 70, "moon"
        collection.upsert(given({3: texts[3], 50: texts[50]}))
        collection.delete([4])
        del texts[4]
        check_like(collection, texts, hasher)
    with Collection.open(made) as collection:
        collection.rehash(other_hasher)
        check_like(collection, texts, other_hasher)


def test_a_backup_has_the_passages_and_goes_on_cutting(
    made: Path, texts: Texts, hasher: Hasher, tmp_path: Path
) -> None:
    with Collection.open(made) as collection:
        collection.backup(tmp_path / "copy")
    with Collection.open(tmp_path / "copy") as copy:
        texts[60] = long_text(np.random.default_rng(2))
        copy.add(given({60: texts[60]}))
        check_like(copy, texts, hasher)


def test_an_interrupted_addition_resumes(tmp_path: Path, hasher: Hasher, texts: Texts) -> None:
    def broken() -> Any:
        yield from given(texts)[:55]
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "c", hasher, passages=PASSAGE) as collection:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("boltzhash.collection.collection.BATCH", 2)
            with pytest.raises(KeyboardInterrupt):
                collection.add_resumably(broken(), "texts")
            assert 0 < len(collection) < 60
        collection.add_resumably(given(texts), "texts")
        check_like(collection, texts, hasher)


def test_words_and_both_are_of_the_best_passage(tmp_path: Path, long_hasher: Hasher) -> None:
    """Three words in one passage are more than the same three all over a page."""
    filler = " ".join(itertools.islice(itertools.cycle(["ship", "sail", "wave", "storm."]), 18))
    words = ["star", "planet", "moon"]
    spread = " ".join(f"{filler} {word}." for word in words * 3)
    together = " ".join([filler, filler, f"{filler} {' '.join(words)}.", filler, filler])
    with Collection.create(tmp_path / "c", long_hasher, passages=PASSAGE) as collection:
        collection.add(
            {"id": i, "text": text} for i, text in enumerate([spread, together, *[filler] * 20])
        )
        for by in ("words", "both"):
            answer = collection.search("star planet moon", by=by)
            assert answer.ids[:2] == [1, 0]
            hit = answer.hits[0]
            assert hit.passage is not None
            assert answer.code is not None
            assert "star planet moon." in hit.passage_text
            assert len(hit.passage_text.split()) <= 1.5 * PASSAGE
            code = long_hasher.transform([hit.passage_text])[0]
            assert (hit.code, hit.distance) == (
                code.tobytes(),
                hamming(answer.code[None], code[None]),
            )
        assert answer.as_json()["hits"][0]["passage"] == hit.passage._asdict()
        with Collection.create(tmp_path / "whole", long_hasher) as whole:
            whole.add(collection)
            assert whole.search("star planet moon", by="words").ids[0] == 0
            assert whole.search("star planet moon").hits[0].passage is None


@pytest.mark.parametrize("by", ["codes", "words", "both"])
def test_the_first_hits_of_many_are_those_of_few(
    tmp_path: Path, long_hasher: Hasher, by: str
) -> None:
    rng = np.random.default_rng(4)
    with Collection.create(tmp_path / "c", long_hasher, passages=PASSAGE) as collection:
        collection.add(given({i: long_text(rng) for i in range(150)}))
        many = collection.search("star planet bread", 150, by=by).hits
        assert len({hit.id for hit in many}) == len(many) > 120
        for k in (1, 10, 50, 51, 120):
            assert collection.search("star planet bread", k, by=by).hits == many[:k]


def test_scores_are_those_of_passages_each_a_document(tmp_path: Path, long_hasher: Hasher) -> None:
    """By words: BM25 as it is written in docs, with the idf of documents."""
    rng = np.random.default_rng(3)
    documents = given({i: long_text(rng) for i in range(40)})
    with Collection.create(tmp_path / "c", long_hasher, passages=PASSAGE) as collection:
        collection.add(documents)
        words = Newest(collection).words
        n_having = sum("bread" in words.terms(one["text"]) for one in documents)
        idf = np.log1p((40 - n_having + 0.5) / (n_having + 0.5))
        for hit in collection.search("bread", 40, by="words"):
            parts = [hit.text[slice(*span)] for span in cut(hit.text, PASSAGE)]
            scores = [
                idf * n / (n + 1.5 * (0.25 + 0.75 * len(part.split()) / PASSAGE))
                for part in parts
                for n in [words.terms(part).count("bread")]
            ]
            assert hit.words == pytest.approx(max(scores))


def test_more_like_compares_wholes(made: Path, texts: Texts, hasher: Hasher) -> None:
    with Collection.open(made) as collection:
        answer = collection.more_like(5, 59, by="codes")
        codes = hasher.transform(list(texts.values()))
        distances = hamming(codes[5][None], codes)[0]
        expected = sorted((distances[i], i) for i in texts if i != 5)
        assert [(hit.distance, hit.id) for hit in answer] == expected
        assert {hit.passage for hit in answer} == {None}
        assert np.array_equal(Newest(collection).rows().codes, codes)  # one code a document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "UPDATE passages SET stop = stop + 1 WHERE passage & 7 = 1",
            "the code of document number",
        ),
        ("DELETE FROM passages WHERE passage & 7 = 1", "it counts .* passages and has"),
        ("UPDATE state SET n_passages = 7", "it counts 7 passages and has"),
        ("UPDATE state SET passage_words = 'x'", "its passage_words is 'x'"),
        ("DELETE FROM state", "it has no state"),
    ],
)
def test_damage_to_passages_is_found(made: Path, change: str, message: str) -> None:
    with contextlib.closing(sqlite3.connect(made / DATABASE)) as connection, connection:
        connection.execute(change)
    with pytest.raises(CollectionError, match=f"is damaged: {message}"):
        Newest(Collection.open(made)).check()


def test_passages_that_do_not_cover_a_text_are_found(made: Path) -> None:
    with Collection.open(made) as collection:
        place, _ = Newest(collection).page(0, 1)[0]
    with contextlib.closing(sqlite3.connect(made / DATABASE)) as connection, connection:
        (number,) = connection.execute(
            "SELECT max(passage) FROM passages WHERE passage >> 32 = ?", (place,)
        ).fetchone()
        row = connection.execute("SELECT * FROM passages WHERE passage = ?", (number,)).fetchone()
        passage, code, known, _, start, stop = row
        checksum = code_checksum(passage, code, known, start, stop - 1)
        connection.execute(
            "UPDATE passages SET stop = ?, checksum = ? WHERE passage = ?",
            (stop - 1, checksum, number),
        )
    with (
        Collection.open(made) as collection,
        pytest.raises(CollectionError, match="passages do not cover the documents"),
    ):
        Newest(collection).check()


def test_what_cannot_be_cut_is_refused(tmp_path: Path, hasher: Hasher) -> None:
    with pytest.raises(ValueError, match=r"passages must be an integer of 20 or more.*got 5"):
        Collection.create(tmp_path / "c", hasher, passages=5)
    with pytest.raises(ValueError, match="passages are kept in folders only"):
        Collection.create("postgresql://localhost/db", hasher, passages=200)
    with (
        Collection.create(tmp_path / "c", hasher, passages=200) as collection,
        pytest.raises(ValueError, match="a cluster hashes whole documents"),
    ):
        add_from(collection, [tmp_path / "corpus.jsonl"])
