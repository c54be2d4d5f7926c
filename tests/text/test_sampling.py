"""The sample against the whole: exact where all fits, uniform where not, words from everywhere."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, NASH, SemanticHasher, Training
from boltzhash.errors import TrainingError
from boltzhash.hashers.shared import deep
from boltzhash.hashers.shared.trained import TrainedHasher
from boltzhash.text import counting, sampling
from boltzhash.text.counting import Counts
from boltzhash.text.sampling import ENDLESS, Room, Sample, make_room, parse_memory, take_sample
from boltzhash.text.tfidf import TfIdf

PLENTY = Room(10**9, 1, 1)


def numbered(n: int, seed: int = 0) -> list[str]:
    """Document i says which it is, and some of ten words that many share."""
    rng = np.random.default_rng(seed)
    return [
        " ".join([f"number{i}", *(f"shared{w}" for w in rng.integers(10, size=4))])
        for i in range(n)
    ]


def documents_of(sample: Sample) -> list[dict[str, float]]:
    """The sample as words and how often each."""
    values, numbers, ends = sample.counts
    words = np.array(sample.words, dtype=object)
    return [
        dict(zip(words[numbers[a:b]], values[a:b], strict=True))
        for a, b in itertools.pairwise(ends)
    ]


def kept(sample: Sample) -> list[int]:
    """The numbers of the documents that were kept."""
    named = (next(w for w in words if w.startswith("number")) for words in documents_of(sample))
    return [int(word.removeprefix("number")) for word in named]


def test_with_room_for_all_the_sample_is_the_corpus() -> None:
    texts = numbered(3000)  # several blocks
    sample, plain = TfIdf(), TfIdf()
    sampled, whole = sample.fit_sample(iter(texts), PLENTY, 0), plain.fit_transform(texts)
    assert sample.words_ == plain.words_
    np.testing.assert_array_equal(sample.idf_, plain.idf_)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(sampled, part), getattr(whole, part))


@pytest.mark.parametrize("n", [999, 1000, 1001, 1200, 6000])
def test_as_many_are_kept_as_are_wanted_at_most(n: int) -> None:
    texts = numbered(n)
    sample = take_sample(iter(texts), None, ENDLESS._replace(most_documents=1000), seed=1)
    numbers = kept(sample)
    assert len(numbers) == min(n, 1000)
    assert numbers == sorted(set(numbers))
    assert sample.n_documents == n
    assert len(sample.words) == n + 10  # of all documents


def test_blocks_of_which_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten million documents a hundred thousand are wanted: many blocks have none of them."""
    monkeypatch.setattr(counting, "BLOCK", 10)
    texts = numbered(3000)
    sample = take_sample(iter(texts), None, ENDLESS._replace(most_documents=100), seed=1)
    found = documents_of(sample)
    assert len(found) == 100
    assert all(dict(Counter(texts[int(min(d)[6:])].split())) == d for d in found)


def test_a_default_fit_learns_from_a_sample_of_many_documents(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deep, "MOST_DOCUMENTS", 200)
    monkeypatch.setattr(deep, "MINIMUM_STEPS", 2)
    texts, labels = numbered(300), [i % 2 for i in range(300)]
    caplog.set_level("INFO", "boltzhash")
    seen: list[int] = []

    def remember(self: Any, network: Any, step: Any, documents: Any, **_: Any) -> None:
        seen.append(documents.inputs.shape[0])
        raise TrainingError("seen")

    monkeypatch.setattr(TrainedHasher, "_train", remember)
    matrix = TfIdf().fit_transform(texts)
    for fit in (
        lambda: NASH(16).fit(iter(texts)),
        lambda: NASH(16).fit(matrix),
        lambda: NASH(16).fit(texts, labels),
        lambda: NASH(16, training=Training(epochs=2)).fit(texts),
    ):
        with pytest.raises(TrainingError, match="seen"):
            fit()
    assert seen == [200, 200, 200, 300]  # all of them where somebody says how long
    assert "learning from 200 of 300 documents" in caplog.text


def test_what_is_kept_fits_and_is_whole_and_in_order() -> None:
    texts = numbered(6000)
    room = Room(9000, 1, 4)
    sample = take_sample(texts, None, room, seed=1)
    numbers = kept(sample)
    assert numbers == sorted(numbers)
    assert room.holds(len(sample.counts.values), len(numbers))
    assert len(sample.counts.values) + 4 * len(numbers) > 0.75 * 9000  # and little room is wasted
    for number, words in zip(numbers, documents_of(sample), strict=True):
        tokens = texts[number].split()
        assert words == {word: tokens.count(word) for word in tokens}


def test_words_are_counted_in_all_documents() -> None:
    texts = numbered(5000)
    sample = take_sample(texts, None, Room(5000, 1, 4), seed=0)
    assert sample.n_documents == 5000
    assert len(kept(sample)) < 1000
    frequency = dict(zip(sample.words, sample.frequency, strict=True))
    for word in (f"shared{i}" for i in range(10)):
        assert frequency[word] == sum(word in text.split() for text in texts)


def test_every_document_is_as_likely() -> None:
    """Over 200 seeds, documents of each tenth of the corpus are kept equally often."""
    texts = numbered(5000)
    tenths = np.zeros(10)
    for seed in range(200):
        numbers = np.array(kept(take_sample(texts, None, Room(2000, 1, 4), seed)))
        tenths += np.bincount(numbers // 500, minlength=10)
    expected = tenths.sum() / 10
    chi_square = ((tenths - expected) ** 2 / expected).sum()
    assert chi_square < 27.9  # 9 degrees of freedom: one in a thousand is above


def test_the_seed_decides() -> None:
    texts, room = numbered(4000), Room(3000, 1, 4)
    one, same, other = (kept(take_sample(texts, None, room, seed)) for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_rare_words_are_forgotten_and_common_ones_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WORDS_AT_MOST", 1500)
    texts = numbered(9000)  # 9,010 different words
    sample = take_sample(texts, None, PLENTY, seed=0)
    assert len(sample.words) <= 1500
    frequency = dict(zip(sample.words, sample.frequency, strict=True))
    assert all(
        frequency[f"shared{i}"] == sum(f"shared{i}" in text.split() for text in texts)
        for i in range(10)
    )
    assert len(sample.counts.ends) == 9001
    for text, words in zip(texts, documents_of(sample), strict=True):
        known = [token for token in text.split() if token in frequency]
        assert set(words) <= set(known)
        assert {w: n for w, n in words.items() if w.startswith("shared")} == {
            w: known.count(w) for w in known if w.startswith("shared")
        }


def test_an_own_pattern_of_tokens_counts_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WORDS_AT_MOST", 20)
    tfidf = TfIdf(token_pattern=r"shared\d")
    tfidf.fit_sample(numbered(3000), PLENTY, 0)
    assert tfidf.words_ == [f"shared{i}" for i in range(10)]


def test_nothing_in_nothing_out() -> None:
    sample = take_sample([], None, PLENTY, 0)
    assert sample.n_documents == 0
    assert sample.counts.ends.tolist() == [0]
    with pytest.raises(ValueError, match="the corpus is empty"):
        TfIdf().fit_sample([], PLENTY, 0)
    blank = take_sample(["", "..."], None, PLENTY, 0)
    assert isinstance(blank.counts, Counts)
    assert blank.counts.ends.tolist() == [0, 0, 0]


def test_a_fit_under_a_bound_that_is_wide_is_the_plain_fit(texts: list[str]) -> None:
    settings = {
        "training__epochs": 3,
        "text__max_words": 100,
        "network__hidden_units": 20,
        "training__device": "cpu",
    }
    bounded = SemanticHasher(16).set_params(**settings).fit(iter(texts), max_memory="4 GB")
    plain = SemanticHasher(16).set_params(**settings).fit(texts)
    assert bounded.fingerprint() == plain.fingerprint()


def test_a_fit_under_a_bound_reads_once_and_says_what_it_learned_from(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sampling, "BYTES_A_DOCUMENT", 10**6)  # as if documents were that large
    passes = []

    def stream() -> Iterator[str]:
        passes.append(1)
        yield from numbered(3000)

    with caplog.at_level("INFO", logger="boltzhash"):
        hasher = LSH(16).fit(stream(), max_memory="1 GB")
    assert len(passes) == 1
    assert "of 3000 documents, each equally likely" in caplog.text
    learned_from = int(caplog.text.split("learning from ")[1].split()[0])
    assert 350 < learned_from < 500  # 497 MB for documents, at 1 MB and a little each
    assert hasher.tfidf_ is not None
    assert hasher.tfidf_.words_ == fitted_on_all().words_


def fitted_on_all() -> TfIdf:
    tfidf = TfIdf()
    tfidf.fit_transform(numbered(3000))
    return tfidf


@pytest.mark.parametrize("value", ["", "GB", "-1 GB", "4", "4 XB", 0, -5, True, 1.5, None, "0 GB"])
def test_sizes_that_are_none(value: object) -> None:
    with pytest.raises(ValueError, match="max_memory must be a number of bytes, or a size like"):
        parse_memory(value)


def test_a_bound_too_small_is_refused_before_the_corpus_is_read() -> None:
    def stream() -> Iterator[str]:
        pytest.fail("the corpus was read")
        yield ""

    with pytest.raises(ValueError, match=r"max_memory must be at least \d+ MB .* got 300 MB"):
        SemanticHasher(64).fit(stream(), max_memory="300 MB")


def test_a_matrix_is_in_memory_already(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="max_memory is for texts, got a matrix"):
        LSH(16).fit(TfIdf().fit_transform(texts), max_memory="4 GB")


def test_room_shrinks_with_the_model_and_the_bits() -> None:
    small, large = make_room(10**10, 8, 0), make_room(10**10, 128, 10**9)
    assert small.n_bytes - large.n_bytes == 10**9
    assert large.a_document - small.a_document == 120 * sampling.BYTES_A_BIT
