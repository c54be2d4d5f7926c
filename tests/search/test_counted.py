"""Documents counted many at a time, against one by one."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.corpus import Document
from boltzhash.search import counted, segments
from boltzhash.search.counted import DocumentCounter
from boltzhash.search.segments import MOST, Segment, digests_of
from boltzhash.text import blanks
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.fields import term_counts
from term_lengths import length

DOCUMENTS = [
    Document("csv.reader", "Reads rows, e-mail and rows; asyncio.gather the TemporaryFile!", None),
    Document("Moon", "the moon", {"title": "Of the moon", "name": "Moon", "year": 3}),
    Document("moon", "", {"title": ""}),
    Document(7, "", None),
    Document("7", "7 csv.reader =7", {"subject": "naïve Häuser 機器学習"}),
    Document("doc-12", "row " * 300 + "doc 12 doc12", {"title": 5}),
    Document("", "\0 \ud83d🙂 C++ '' -- don't " + "x" * 100_000 + " a.b.c.d.e.f.g"),
]


@pytest.fixture(params=["compiled", "uncompiled"])
def compiled_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "uncompiled":
        monkeypatch.setattr(segments, "_postings", None)
        monkeypatch.setattr(blanks, "_blanks", None)


def check(segment: Segment, words: Analyzer, documents: list[Document], places: list[int]) -> None:
    expected = [term_counts(document, words) for document in documents]
    assert segment.places.tolist() == places
    assert segment.lengths.tolist() == [length(counts, words) for counts in expected]
    every = sorted({word for counts in expected for word in counts})
    assert np.array_equal(segment.words, np.sort(digests_of(every)))
    starts, ends = segment.ranges(digests_of(every))
    for word, start, end in zip(every, starts.tolist(), ends.tolist(), strict=True):
        having = zip(
            segment.places_of_words[start:end].tolist(), segment.counts[start:end], strict=True
        )
        assert dict(having) == {
            place: min(counts[word], MOST)
            for place, counts in zip(places, expected, strict=True)
            if word in counts
        }


@pytest.mark.usefixtures("compiled_or_not")
def test_a_segment_has_the_counts_of_each_document() -> None:
    words, places = Analyzer(), [2, 3, 5, 8, 13, 21, 34]
    counter = DocumentCounter(words)
    for some in (slice(0, 7), slice(2, 4), slice(0, 7), slice(5, 6), slice(0, 0)):
        check(counter.segment(places[some], DOCUMENTS[some]), words, DOCUMENTS[some], places[some])


@pytest.mark.usefixtures("compiled_or_not")
def test_what_is_forgotten_is_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "_MOST_KNOWN", 3)
    words = Analyzer("german")
    counter = DocumentCounter(words)
    for number, document in enumerate(DOCUMENTS * 2):
        check(counter.segment([number], [document]), words, [document], [number])


def test_digests_are_the_same_compiled_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["", "a", "12345678", "123456789", "naïve", "機器学習", "x" * 1000, "\0", "\0\0"]
    compiled = digests_of(words)
    monkeypatch.setattr(segments, "_postings", None)
    assert np.array_equal(compiled, digests_of(words))
    assert len(set(compiled.tolist())) == len(words)
