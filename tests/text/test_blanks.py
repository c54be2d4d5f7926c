"""Tokens numbered in C and in Python."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.text import blanks
from boltzhash.text.blanks import CompiledTokens, PythonTokens, make_tokens

EVERY_BLANK = "".join(chr(c) for c in range(0x110000) if chr(c).isspace())
TEXTS = [
    "a cat and a dog",
    "",
    f"{EVERY_BLANK}cat{EVERY_BLANK}dog",
    "naïve café 機器学習 🙂 a\u200bcat",
    "x" * 1000,
    "half a pair \ud800 and a\0zero",
    "é ÿ \x85 \x1c\x1d\x1e\x1f tail",
]


def compiled_tokens() -> CompiledTokens:
    if blanks._blanks is None:
        pytest.skip("built without a compiler")
    return CompiledTokens()


def test_compiled_tokens_are_those_of_python() -> None:
    one, other = compiled_tokens(), PythonTokens()
    for texts in (TEXTS[:3], TEXTS, TEXTS[::-1], []):
        found, expected = one.number(texts), other.number(texts)
        np.testing.assert_array_equal(found.numbers, expected.numbers)
        np.testing.assert_array_equal(found.sizes, expected.sizes)
        assert found.new == expected.new


def test_many_tokens_keep_their_numbers() -> None:
    tokens = make_tokens()
    words = [f"word{i}" for i in range(10_000)]
    assert tokens.number([" ".join(words)]).numbers.tolist() == list(range(10_000))
    again = tokens.number([" ".join(words[::-1])])
    assert again.numbers.tolist() == list(range(9_999, -1, -1))
    assert again.new == []


def test_what_is_not_a_text_is_named() -> None:
    with pytest.raises(TypeError, match="text 1 must be a string, got int"):
        compiled_tokens().number(["a", 7])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="texts must be a list, got str"):
        compiled_tokens().number("a")  # type: ignore[arg-type]
