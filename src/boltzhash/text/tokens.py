"""Text → tokens: runs of letters and digits, which models count and shingles are made of."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

import numpy as np

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han. Their runs become
# overlapping pairs of characters, the usual stand-in for words without a dictionary.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
# Marks that belong to the word they are in but that Python's \w leaves out: combining accents, Hebrew
# and Arabic points, the vowel signs of the Indic scripts (their danda, a full stop, is not one).
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u0a01-\u0a03\u0a3c-\u0a4d\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57"
    "\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d81-\u0d83\u0dca-\u0ddf"
)
_TOKEN = f"(?:(?![{UNSPACED}])[^\\W_]|[{MARKS}])"
_TOKENS = re.compile(f"([{UNSPACED}]+)|({_TOKEN}{{2,}})")
_EVERY_TOKEN = re.compile(f"([{UNSPACED}]+)|({_TOKEN}+)")
_ASCII_TOKENS = re.compile("[a-z0-9]{2,}")  # the same for ASCII, several times as fast
_EVERY_ASCII_TOKEN = re.compile("[a-z0-9]+")


def fold(text: str) -> str:
    """One spelling for what is the same text: compatibility characters replaced, lower case.

    >>> fold("Ｓtraße")
    'strasse'
    """
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def tokenize(text: str, pattern: re.Pattern[str] | None = None) -> list[str]:
    """Lower-case words of two or more letters or digits; pairs of characters in scripts without spaces.

    Underscores separate, so "read" finds ``read_csv``. With ``pattern``, its matches (or
    those of its one group) are the tokens.

    >>> tokenize("The ZipFile's read_csv, Straße!")
    ['the', 'zipfile', 'read', 'csv', 'strasse']
    >>> tokenize("机器学习 naïve हिन्दी")
    ['机器', '器学', '学习', 'naïve', 'हिन्दी']
    """
    if pattern is None and text.isascii():
        return _ASCII_TOKENS.findall(text.lower())
    text = fold(text)
    return pattern.findall(text) if pattern is not None else _with_pairs(_TOKENS, text)


def every_token(text: str) -> list[str]:
    """The same with single letters and digits: "version 2" is not "version 3".

    >>> every_token("Version 2 of read_csv: 机器学")
    ['version', '2', 'of', 'read', 'csv', '机器', '器学']
    """
    if text.isascii():
        return _EVERY_ASCII_TOKEN.findall(text.lower())
    return _with_pairs(_EVERY_TOKEN, fold(text))


def _with_pairs(rule: re.Pattern[str], text: str) -> list[str]:
    tokens: list[str] = []
    for run, token in rule.findall(text):
        if token:
            tokens.append(token)
        elif len(run) == 1:
            tokens.append(run)
        else:
            tokens.extend(run[i : i + 2] for i in range(len(run) - 1))
    return tokens


@cache
def character_classes() -> bytes:
    """One byte for every code point: 1 in a word, 2 in a script without spaces, 0 between words.

    Made from the expressions of :func:`tokenize`, for code that cannot use them.

    >>> [character_classes()[ord(c)] for c in "aé_機"]
    [1, 1, 0, 2]
    """
    code_points = np.arange(sys.maxunicode + 1, dtype="<u4")
    characters = code_points.tobytes().decode("utf-32-le", "surrogatepass")
    classes = bytearray(len(characters))
    for number, members in ((1, r"^\W_"), (1, MARKS), (2, UNSPACED)):
        for run in re.finditer(f"[{members}]+", characters):
            classes[run.start() : run.end()] = bytes([number]) * (run.end() - run.start())
    return bytes(classes)


def compile_pattern(token_pattern: str | None) -> re.Pattern[str] | None:
    """Compile a user's regular expression, with at most one group."""
    if token_pattern is None:
        return None
    try:
        pattern = re.compile(token_pattern)
    except re.error as error:
        raise ValueError(
            f"token_pattern must be a regular expression, got {token_pattern!r}: {error}"
        ) from None
    if pattern.groups > 1:
        raise ValueError(f"token_pattern may have at most one group, got {token_pattern!r}")
    return pattern


def printable(text: str) -> str:
    """A text that does nothing to a terminal: control characters are blanks, lines stay lines.

    >>> printable("red\\x1b[2Jlight\\nnext")
    'red [2Jlight\\nnext'
    """
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)
