"""Tokens of many scripts."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boltzhash.text.tokens import character_classes, tokenize

TOKENS = {
    "English": ("The cat's 2 e-mails, 42 times!", ["the", "cat", "mails", "42", "times"]),
    "identifiers": ("np.read_csv(x)", ["np", "read", "csv"]),
    "German": ("Größe der Straße", ["grösse", "der", "strasse"]),
    "Greek": ("ΛΟΓΟΣ λόγος", ["λογοσ", "λόγοσ"]),
    "Russian": ("Война и Мир", ["война", "мир"]),
    "Arabic with points": ("العَرَبِيَّة لغة", ["العَرَبِيَّة", "لغة"]),
    "Hebrew": ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
    "Hindi, danda is a stop": ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
    "Chinese": ("机器学习", ["机器", "器学", "学习"]),
    "one character": ("水 water", ["水", "water"]),
    "Japanese": ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
    "Korean has spaces": ("한국어 문장", ["한국어", "문장"]),
    "Thai": ("ภาษา", ["ภา", "าษ", "ษา"]),
    "mixed": ("Python编程", ["python", "编程"]),
    "composed or not": ("cafe\u0301 café", ["café", "café"]),
    "full width": ("ＡＢＣ", ["abc"]),
    "nothing": ("… – !?", []),
}


@pytest.mark.parametrize(("text", "expected"), TOKENS.values(), ids=TOKENS.keys())
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokenize(text) == [unicodedata.normalize("NFKC", word) for word in expected]


@given(st.text(st.characters(codec="ascii")))
def test_plain_text_is_cut_as_any_other(text: str) -> None:
    """The last word makes it text of another kind, which is cut by the general rule."""
    assert [*tokenize(text), "水"] == tokenize(f"{text} 水")


def test_classes_are_those_of_the_rule() -> None:
    """After a letter, one that belongs to words makes a word with it, and one of a script without spaces
    is a token of its own. All characters that folding leaves as they are."""
    classes = character_classes()
    assert len(classes) == sys.maxunicode + 1
    for code in range(len(classes)):
        pair = "x" + chr(code)
        if unicodedata.normalize("NFKC", pair).casefold() != pair:
            continue
        tokens = tokenize(pair)
        expected = 1 if tokens == [pair] else 2 if tokens == [chr(code)] else 0
        assert classes[code] == expected, hex(code)
