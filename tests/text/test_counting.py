"""The compiled counter against its plain twin: the same words, numbers and counts for every text."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boltzhash.text import counting
from boltzhash.text.counting import (
    CompiledCounter,
    Counter,
    Counts,
    PythonCounter,
    count_words,
    make_counter,
)
from boltzhash.text.tfidf import TfIdf
from boltzhash.text.tokens import compile_pattern

compiled = pytest.mark.skipif(
    counting._tokens is None, reason="boltzhash was installed without a compiler"
)

# What arbitrary Unicode seldom puts side by side: capitals, digits, underscores, marks, scripts without
# spaces, characters that folding makes longer, shorter or ASCII, astral ones, halves of pairs, NUL.
SCRIPTS = (
    "aBz09_ \0\n-éßÀµİŉǅ\u0301\u0345ﬃＡ①½²ªºΣςж\u0483\u05b0ابّहि्।"
    "กขກ機械カ한\ufb01𠀋𝔸𐐀\U0001f600\ud800\udfff"
)
texts = st.text(st.characters()) | st.text(st.sampled_from(SCRIPTS), max_size=40)


def assert_same(ours: Counts, expected: Counts) -> None:
    for part, wanted in zip(ours, expected, strict=True):
        assert part.dtype == wanted.dtype
        np.testing.assert_array_equal(part, wanted)


def grown(counter: Counter, documents: list[str]) -> tuple[Counts, list[str]]:
    return count_words(documents, counter, grow=True), counter.words()


def assert_same_words(documents: list[str]) -> list[str]:
    ours, words = grown(CompiledCounter([]), documents)
    expected, expected_words = grown(PythonCounter([], None), documents)
    assert words == expected_words
    assert_same(ours, expected)
    return words


def assert_twins(documents: list[str]) -> None:
    """On new words, and on a vocabulary of every other word."""
    half = assert_same_words(documents)[::2]
    assert_same(
        CompiledCounter(half).count(documents, grow=False),
        PythonCounter(half, None).count(documents, grow=False),
    )


@compiled
@settings(deadline=None)  # the first text that is not ASCII makes the table of characters
@given(st.lists(texts, max_size=5))
@example([])
@example([""])
@example(["nul\0byte", "\0", "half \ud800 pair \udc00ab"])
@example(["İstanbul", "ŉ", "ﬃ", "Ａb", "x\u0301y", "\u0301\u0301"])
def test_any_text(documents: list[str]) -> None:
    assert_twins(documents)


@compiled
def test_very_long_words() -> None:
    assert_twins(["a" * 100_000, "é" * 100_000 + " " + "a" * 99_999, "字" * 1000])


@compiled
def test_every_character_between_letters_doubled_and_alone() -> None:
    """Many characters a text, so that one of them decides how wide the others are stored."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    documents = [
        " ".join(f"x{c}y {c}{c} {c}" for c in characters[start : start + 128])
        for start in range(0, len(characters), 128)
    ]
    assert_same_words(documents)


@compiled
@pytest.mark.parametrize("corpus", ["ng20", "reuters", "tmc"])
def test_every_text_of_a_corpus(data_folder: Path, corpus: str) -> None:
    with gzip.open(data_folder / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert_same_words([json.loads(line)["text"] for line in lines])


@compiled
def test_words_that_no_token_can_be_and_words_twice() -> None:
    words = ["", "a", "Big", "two words", "\ud800", "red", "blue", "red", "x" * 300, "机器", "机"]
    documents = ["a red BIG red bus", "blue \ud800 机器 机", "x" * 300 + " " + "x" * 301, ""]
    counter = CompiledCounter(words)
    assert counter.words() == words
    assert_same(
        counter.count(documents, grow=False),
        PythonCounter(words, None).count(documents, grow=False),
    )


@compiled
def test_a_large_vocabulary_and_words_that_share_their_beginning() -> None:
    """Grows all the tables many times over."""
    documents = [
        " ".join(f"word{'e' * (n % 23)}{n}" for n in range(d, 40_000, 7)) for d in range(8)
    ]
    assert_twins(documents)


def test_counts_by_hand() -> None:
    for make in (make_counter, PythonCounter):
        counts = make(["apple", "bus", "car"], None).count(
            ["a Car, a BUS; car", "pear"], grow=False
        )
        assert counts.values.tolist() == [1.0, 2.0]
        assert counts.numbers.tolist() == [1, 2]
        assert counts.ends.tolist() == [0, 2, 2]


def test_many_blocks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [f"word{n % 5} word{n % 3} other" for n in range(20)]
    whole = grown(make_counter([], None), documents)
    monkeypatch.setattr(counting, "BLOCK", 6)
    pieces = grown(make_counter([], None), documents)
    assert_same(pieces[0], whole[0])
    assert pieces[1] == whole[1]


def test_a_document_that_is_no_text_is_named_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BLOCK", 4)
    with pytest.raises(ValueError, match="document 9 must be a string, got float"):
        count_words(["a"] * 9 + [float("nan")], make_counter([], None))  # type: ignore[list-item]


def test_a_pattern_of_ones_own_is_for_python() -> None:
    counter = make_counter(["#red"], compile_pattern(r"#\w+"))
    assert isinstance(counter, PythonCounter)
    assert counter.count(["#red #blue #RED red"], grow=False).values.tolist() == [2.0]


def test_without_a_compiler_tfidf_is_the_same(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [*texts, "ΛΟΓΟΣ 机器 naïve", ""]
    first = TfIdf()
    expected = first.fit_transform(documents)
    monkeypatch.setattr(counting, "_tokens", None)
    assert isinstance(make_counter([], None), PythonCounter)
    plain = TfIdf()
    assert (plain.fit_transform(documents) != expected).nnz == 0
    assert plain.words_ == first.words_
    assert (plain.transform(documents) != first.transform(documents)).nnz == 0


@compiled
def test_threads_share_a_counter() -> None:
    documents = [f"word{n} word{n // 2} jürgen" for n in range(2000)]
    counter = CompiledCounter([f"word{n}" for n in range(0, 2000, 3)])
    expected = counter.count(documents, grow=False)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: counter.count(documents, grow=False), range(16)):
            assert_same(found, expected)


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_counter_can_be_copied_and_sent(remake: object) -> None:
    counter = make_counter(["red", "blue"], None)
    again = remake(counter)  # type: ignore[operator]
    assert again.words() == ["red", "blue"]
    assert_same(again.count(["blue blue"], grow=False), counter.count(["blue blue"], grow=False))


@compiled
def test_the_compiled_part_checks_what_it_is_given() -> None:
    vocabulary = counting._tokens.Vocabulary(["red"])
    with pytest.raises(ValueError, match="classes must have 1114112 bytes, got 3"):
        vocabulary.count(["é"], b"abc")
    with pytest.raises(ValueError, match="text 1 is not ASCII"):
        vocabulary.count(["e", "é"], None)
    with pytest.raises(TypeError, match="text 0 must be a string, got int"):
        vocabulary.count([7], None)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="word 0 must be a string, got bytes"):
        counting._tokens.Vocabulary([b"red"])  # type: ignore[list-item]
