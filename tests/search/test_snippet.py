"""The line that is shown for a hit."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boltzhash.search import snippet
from boltzhash.search.snippet import sentences, spans
from boltzhash.text.analyzer import Analyzer

LONG = "word " * 40


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("One apple. Two pears. Three plums.", "pears", "Two pears."),
        ("One apple. Two pears. Two more pears.", "two pears", "Two pears."),
        ("An apple! A pear? A plum.", "plum", "A plum."),
        ("An apple! A pear? A plum.", "pear", "A pear?"),
        ("No match here. Nor here.", "zebra", "No match here."),
        ("A title\n\nThe apple itself", "apple", "The apple itself"),
        ("A title\n  \t\nThe apple itself", "apple", "The apple itself"),
        ("one\nline of\tan   apple", "apple", "one line of an apple"),
        ("version 3.11 of it. Then apples.", "version", "version 3.11 of it."),
        (
            "Fruit (e.g. an apple, i.e. Malus). Other.",
            "apple",
            "Fruit (e.g. an apple, i.e. Malus).",
        ),
        ("READ_CSV reads. Other.", "csv read", "READ_CSV reads."),
        ("", "apple", ""),
        (" \n\n \t", "apple", ""),
        ("\n\n  First.  Second.", "", "First."),
        ("...  ", "apple", "..."),
    ],
)
def test_the_sentence_with_most_words_of_the_query(text: str, query: str, expected: str) -> None:
    assert snippet(text, query) == expected


def test_words_count_once_however_often_they_stand_there() -> None:
    text = "Bus bus bus bus. A train and a bus."
    assert snippet(text, "bus train") == "A train and a bus."


# Unicode


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Ein Haus. Die Straße. Ein Auto.", "STRASSE", "Die Straße."),
        ("Le café. La cafetière.", "CAFE\u0301", "Le café."),
        ("Ёлка стоит. Поезд идёт.", "поезд", "Поезд идёт."),
        ("天气好。 机器学习很有趣。 再见。", "机器学习", "机器学习很有趣。"),
        # Chinese and Japanese put no space after a full stop.
        ("天气好。机器学习很有趣。再见。", "机器学习", "机器学习很有趣。"),
        ("元気ですか？機械学習です。はい！", "機械学習", "機械学習です。"),
    ],
)
def test_sentences_and_words_of_other_languages(text: str, query: str, expected: str) -> None:
    assert snippet(text, query) == expected


# Width


@pytest.mark.parametrize("length", [79, 80])
def test_a_line_that_fits_is_not_cut(length: int) -> None:
    assert snippet("x" * length, "x") == "x" * length


def test_a_longer_line_is_cut_to_the_width_with_a_mark() -> None:
    assert snippet("x" * 81, "x") == "x" * 79 + "…"


def test_no_space_is_left_before_the_mark() -> None:
    cut = snippet(LONG, "word", width=11)
    assert cut == "word word…"


@pytest.mark.parametrize("width", [1, 2, 10, 80, 500])
def test_a_snippet_is_never_wider_than_asked(width: int) -> None:
    assert len(snippet(LONG + "\n\n" + LONG, "word", width=width)) <= width


def test_width_counts_characters_and_not_bytes() -> None:
    assert snippet("é" * 80, "") == "é" * 80
    assert snippet("é" * 81, "") == "é" * 79 + "…"


def test_a_snippet_is_one_line() -> None:
    text = "a\rb\x0bc\x0cd\x85e\u2028f\u2029g\nh"
    assert snippet(text, "x") == "a b c d e f g h"


# Long lines


def test_a_long_sentence_is_shown_around_the_first_word_that_was_sought() -> None:
    text = "before " * 50 + "a needle " + "after " * 50
    shown = snippet(text, "the needle")
    assert shown.startswith("…before")
    assert " a needle after " in shown
    assert shown.endswith("…")
    assert len(shown) <= 80


def test_the_end_of_a_long_sentence_is_shown_to_the_end() -> None:
    shown = snippet("before " * 50 + "a needle.", "needle")
    assert shown.startswith("…before")
    assert shown.endswith("before a needle.")
    assert len(shown) <= 80


def test_a_long_sentence_without_spaces_is_shown_around_the_words_as_well() -> None:
    shown = snippet("天气" * 60 + "机器学习" + "天气" * 60, "机器学习")
    assert "机器学习" in shown
    assert len(shown) <= 80


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Of the time that the CPU works for this process, whatever else it does meanwhile."""

    def too_late(*_: object) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGPROF, too_late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize(
    "filler", ["word ", "word", "- ", "\n", "\n \n", " ", "word\n", "---\n", "。"]
)
def test_the_work_does_not_grow_with_the_square_of_the_length(filler: str) -> None:
    """Half a megabyte is a fraction of a second of linear work, and minutes of quadratic."""
    text = filler * (500_000 // len(filler)) + "\n\nA needle."
    with deadline(10):
        assert snippet(text, "needle") == "A needle."


# One alternative after the other at every character: what a sentence is, slowly.
PLAIN_BREAKS = re.compile(
    r"(?m)^[^\n]*\n[ \t]*[-=~^*]{3,}[ \t]*(?:\n|$)"
    r"|(?<=[.!?])(?<!\bi\.e\.)(?<!\be\.g\.)\s+|(?<=[。！？])|\n\s*\n"
)
PIECES = st.sampled_from(
    [" ", "\n", "\t", ".", "?", "。", "-", "---", "===", "i.e.", "e.g.", "a", "Word", "机", "\n\n"]
)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_sentences_are_what_the_plain_expression_says(text: str) -> None:
    def words(parts: list[str]) -> list[list[str]]:
        return [part.split() for part in parts if part.split()]

    assert words(sentences(text)) == words(PLAIN_BREAKS.split(text))


@pytest.mark.parametrize(
    ("line", "sought", "marked"),
    [
        ("Reads a read_csv file.", {"read"}, ["Reads", "read"]),
        ("os.path.join", {"os.path.join"}, ["os.path.join"]),
        ("(__init__)", {"__init__"}, ["__init__"]),
        ("见机器学习。", {"机器", "学习"}, ["机器", "学习"]),
        ("机器学", {"机器", "器学"}, ["机器学"]),
        ("Le café, Café!", {"cafe"}, ["café", "Café"]),
        ("nothing", {"read"}, []),
        ("nothing", set(), []),
    ],
)
def test_words_that_are_sought_are_marked(line: str, sought: set[str], marked: list[str]) -> None:
    assert [line[start:end] for start, end in spans(line, sought, Analyzer())] == marked
