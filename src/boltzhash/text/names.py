"""A word of a text → the terms of an index: names whole and in parts.

A word is what stands between blanks. Its letters and digits, folded to one spelling, are terms, in
order. Single letters and digits are terms as well: "vitamin C", "R" and "figure 5" are asked for, and
where a letter stands everywhere its idf makes it weightless. Only beside an apostrophe they are dropped
("cat's", "don't", "l'eau"). ``C++`` and ``C#`` are terms. Scripts without spaces are cut into pairs of
characters.

Letters joined by points, ``::``, hyphens or underscores are read as one name. Its parts are terms, in
order: ``numpy.linalg.inv`` gives numpy, linalg and inv. The whole comes beside them, and of three parts
or more also the last two (people write ``linalg.inv``). A hyphen's whole is written together, so
"e-mail" and "email" meet. In camel case it is the other way round: the whole is the term, since
"JavaScript" and "javascript" are one, and its parts come beside it. A sentence whose full stop lacks its
blank ("file.Read") costs one rare term more and no other harm. Single letters with points are one term:
"U.S." and "US", "e.g." and "eg".
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from boltzhash.text.tokens import MARKS, UNSPACED, fold, tokenize

_LONGEST_TERM = 128  # a longer word is no term; its beginning is kept
_MOST_CAMEL_PARTS = 8  # more humps than that has base64, not a name

# A chunk is what is cut further by itself: a name with all its parts, or a run of an unspaced script.
_LANGUAGE_NAME = r"[A-Za-z](?:\+\+|#)"  # C++, C#
_FIRST = f"(?![{UNSPACED}])\\w"
_LETTER = f"(?:{_FIRST}|[{MARKS}])"
_CHUNKS = re.compile(
    f"[{UNSPACED}]+|{_LANGUAGE_NAME}|{_FIRST}{_LETTER}*(?:(?:[.'-]|::){_LETTER}+)*"
)
# The same for ASCII, faster.
_ASCII_CHUNKS = re.compile(f"{_LANGUAGE_NAME}|[A-Za-z0-9_]+(?:(?:[.'-]|::)[A-Za-z0-9_]+)*")
_AROUND = ".,;:!?()[]{}<>\"'`*/"  # never the first or last character of a chunk
# Signs that are written in several ways, and some that are not seen at all.
_SIGNS = str.maketrans({"’": "'", "ʼ": "'", "‐": "-", "\u00ad": "", "\u200d": "", "\u2060": ""})
_PLAIN = re.compile("[a-z]+|[A-Z][a-z]*|[A-Z]+s?|[0-9]+")  # nothing to cut: most of any text
_HYPHENATED = re.compile(f"(?:{_PLAIN.pattern})(?:-(?:{_PLAIN.pattern}))+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]")
_POINTS = re.compile(r"\.|::")
_LAST_TWO = re.compile(r"[^.:]+(?:\.|::)[^.:]+$")
_HUMPS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")
_PLURAL = re.compile("[A-Z]{2,}s")  # URLs


class Cut(NamedTuple):
    """The terms of a word: in order, and those that stand for several of these or for a part."""

    in_order: tuple[str, ...]
    beside: tuple[str, ...]

    def terms(self) -> set[str]:
        return {*self.in_order, *self.beside}


def core_of(word: str) -> str:
    """A word without the signs around it.

    >>> core_of("(asyncio.gather),")
    'asyncio.gather'
    """
    return word.strip(_AROUND)


def plain_term(core: str) -> str | None:
    """The one term of a word in which nothing is to be cut; None if there may be something.

    >>> plain_term("Reading"), plain_term("read_csv")
    ('reading', None)
    """
    return core.lower()[:_LONGEST_TERM] if _PLAIN.fullmatch(core) else None


def cut_word(core: str) -> Cut:
    """The terms of a word without the signs around it, folded but not stemmed.

    >>> cut_word("TemporaryFile"), cut_word("max_iter").beside
    (Cut(in_order=('temporaryfile',), beside=('temporary', 'file')), ('max_iter',))
    """
    if (plain := plain_term(core)) is not None:
        return Cut((plain,), ())
    if len(core) <= _LONGEST_TERM and _HYPHENATED.fullmatch(core):  # many an id is of this kind
        pieces = core.lower().split("-")
        return Cut(tuple(pieces), ("".join(pieces),))
    if core.isascii():
        chunks = _ASCII_CHUNKS.findall(core)
    else:
        chunks = _CHUNKS.findall(unicodedata.normalize("NFKC", core).translate(_SIGNS))
    in_order: list[str] = []
    beside: list[str] = []
    for chunk in chunks:
        _cut_chunk(chunk, in_order, beside)
    if core.isascii() and len(core) <= _LONGEST_TERM:  # and so are its terms
        return Cut(tuple(in_order), tuple(beside))
    return Cut(
        tuple(term[:_LONGEST_TERM] for term in in_order),
        tuple(term for term in beside if len(term) <= _LONGEST_TERM),
    )


def _cut_chunk(chunk: str, in_order: list[str], beside: list[str]) -> None:
    if _UNSPACED_RUN.match(chunk):
        in_order.extend(tokenize(chunk))
    elif chunk[-1] in "+#":
        in_order.append(chunk.lower())
    else:
        runs = chunk.split("'")
        for run in [run for run in runs if len(run) > 1] or runs:
            _cut_at_points(run, in_order, beside)


def _cut_at_points(run: str, in_order: list[str], beside: list[str]) -> None:
    segments = _POINTS.split(run) if "." in run or ":" in run else [run]
    if len(segments) > 1 and all(len(s) == 1 and s.isalpha() for s in segments):
        in_order.append(fold("".join(segments)))  # U.S.A
        return
    if len(segments) > 1:
        whole = fold(run)
        beside.append(whole)
        if len(segments) > 2:
            beside.extend(_LAST_TWO.findall(whole))
    for segment in segments:
        pieces = segment.split("-")
        if len(pieces) > 1:
            beside.append(fold("".join(pieces)))
        for piece in pieces:
            _cut_at_underscores(piece, in_order, beside)


def _cut_at_underscores(piece: str, in_order: list[str], beside: list[str]) -> None:
    """Outer underscores are emphasis (_so_) and left out, but for Python's ``__init__``."""
    parts = [part for part in piece.split("_") if part]
    special = piece.startswith("__") and piece.endswith("__")
    if len(parts) > 1 or (parts and special):
        beside.append(fold(piece if special else piece.strip("_")))
    for part in parts:
        in_order.append(fold(part))
        if part.islower() or part.isdigit():
            continue  # without humps, as most are
        humps = _HUMPS.split(part)
        if 1 < len(humps) <= _MOST_CAMEL_PARTS and not _PLURAL.fullmatch(part):
            beside.extend(fold(hump) for hump in humps if len(hump) > 1)
