"""Documents ranked by words, or by words and codes: candidates of both, one score, one order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, hamming
from boltzhash.corpus import Document
from boltzhash.search.hits import Hit, Hits
from boltzhash.search.inverted import Places, WordIndex
from boltzhash.search.order import CANDIDATES
from boltzhash.search.relevance import BESIDE_WEIGHT, agreement
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.queries import TermQuery, has_phrase

if TYPE_CHECKING:
    from boltzhash.encoding.coding import Coded, CodedQuery

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Phrases = Sequence[Sequence[str]]


class CodesByPlace(Protocol):
    """The codes of the documents whose words are in an index, by the same places.

    Of a document that is cut into passages, the code is that of the best one.
    """

    def top_k(self, query: Codes, k: int, allowed: Mask | None, /) -> Hits:
        """The places of the k nearest that ``allowed`` lets through."""

    def codes_at(self, places: Places, /) -> Codes:
        """The packed codes at places, shape (n, n_bits / 8)."""


class Scoring(NamedTuple):
    """What the scores for one query are made with."""

    words: Mapping[str, float]  # what each may give to BM25
    deviation: float  # of BM25
    margins: Floats | None  # of the query's bits; None if codes take no part
    weight: float  # of codes

    def score(self, words: Floats, codes: Codes) -> Floats:
        """Of what has these BM25 and packed codes: arrays (n,) and (n, n_bits / 8)."""
        scores = words / self.deviation if self.deviation else np.zeros(len(words))
        if self.margins is not None:
            scores = scores + self.weight * agreement(self.margins, codes)
        return scores


class Ranked(NamedTuple):
    """Places, best first, each with its score, BM25 and Hamming distance: arrays of one length.

    There are no distances from a query that has no code. ``matching`` says of every place whether its
    document has a word asked for and may be a hit.
    """

    places: Places
    scores: Floats
    words: Floats
    distances: NDArray[np.int32] | None
    matching: Mask
    scoring: Scoring

    def hits(self, found: Iterable[Coded]) -> list[Hit]:
        """With the documents at these places."""
        hits = []
        n, scores, words = len(self.places), self.scores.tolist(), self.words.tolist()
        distances = [None] * n if self.distances is None else self.distances.tolist()
        for coded, score, part, distance in zip(found, scores, words, distances, strict=True):
            document = coded.document
            hits.append(Hit(document.id, distance, document, coded.known, coded.code, score, part))
        return hits


def having_phrases(
    analyzer: Analyzer,
    documents_at: Callable[[Places], Sequence[Document]],
    places: Places,
    phrases: Phrases,
) -> Places:
    """Those of some places whose documents have all of some phrases."""
    kept = [
        all(has_phrase(document, phrase, analyzer) for phrase in phrases)
        for document in documents_at(places)
    ]
    return np.asarray(places[np.array(kept, dtype=np.bool_)])


def rank(
    index: WordIndex,
    codes: CodesByPlace,
    query: CodedQuery,
    wanted: TermQuery,
    allowed: Mask | None,
    with_phrases: Callable[[Places, Phrases], Places],
    k: int,
    *,
    by: str,
) -> Ranked:
    """The k best documents that ``allowed`` lets through, that have every phrase and no excluded word.

    ``with_phrases`` says which of some places have all of some phrases in their texts.
    """
    if allowed is not None and len(allowed) < index.size:  # the last documents were deleted
        allowed = np.pad(allowed, (0, index.size - len(allowed)))
    if wanted.excluded or wanted.phrases or wanted.excluded_phrases:
        allowed = _as_wanted(index, wanted, allowed, with_phrases)
    times = dict[str, float](wanted.terms)
    for term in wanted.beside:
        times[term] *= BESIDE_WEIGHT
    found = index.score(times)
    n = max(k, CANDIDATES)
    candidates = found.best(n, allowed)
    margins = None
    if by == "both" and query.known_words != 0 and query.code is not None:
        margins = sureness(query.code, query.margins)
        nearest = codes.top_k(query.code, n, allowed).ids
        candidates = _in_either(candidates, nearest)
    packed = codes.codes_at(candidates)
    words = found.scores[candidates].astype(np.float64)
    scoring = Scoring(found.weights, found.deviation, margins, query.weight)
    scores = scoring.score(words, packed)
    matching = found.scores != 0
    if allowed is not None:
        matching &= allowed[: len(matching)]
    rows = _contenders(scores, k)
    candidates, scores, words = candidates[rows], scores[rows], words[rows]
    if query.code is None:
        order = np.lexsort((candidates, -scores))[:k]
        return Ranked(candidates[order], scores[order], words[order], None, matching, scoring)
    distances = hamming(query.code[None], packed[rows])[0]
    order = np.lexsort((candidates, distances, -scores))[:k]
    parts = candidates[order], scores[order], words[order], distances[order]
    return Ranked(*parts, matching, scoring)


def _contenders(scores: Floats, k: int) -> NDArray[np.intp]:
    """The rows that can be among the first k: few are left to sort.

    They have a score as high as the kth.

    >>> _contenders(np.array([1.0, 3.0, 2.0, 2.0]), 2).tolist()
    [1, 2, 3]
    """
    if len(scores) <= k:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least)


def _in_either(one: Places, other: Places) -> Places:
    """Places of both, each once and in order: np.union1d, several times as fast for a thousand.

    >>> _in_either(np.array([3, 1]), np.array([2, 3])).tolist()
    [1, 2, 3]
    """
    places = np.sort(np.concatenate([one, other]))
    is_first = np.ones(len(places), dtype=np.bool_)
    np.not_equal(places[1:], places[:-1], out=is_first[1:])
    return np.asarray(places[is_first])


def sureness(code: Codes, margins: Floats | None) -> Floats:
    """How sure the model is of each bit; if nothing says so, it is as sure of one as of another.

    >>> sureness(np.array([0b1100_0000], dtype=np.uint8), None).tolist()
    [1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0]
    """
    return margins if margins is not None else np.unpackbits(code).astype(np.float64) * 2 - 1


def asked_of(wanted: TermQuery) -> set[str]:
    """All words whose documents a ranking looks at."""
    phrases = [*wanted.phrases, *wanted.excluded_phrases]
    return {*wanted.terms, *wanted.excluded, *(word for phrase in phrases for word in phrase)}


def _as_wanted(
    index: WordIndex,
    wanted: TermQuery,
    allowed: Mask | None,
    with_phrases: Callable[[Places, Phrases], Places],
) -> Mask:
    """Of each place, whether its document has every phrase and nothing that is excluded."""
    size = index.size if allowed is None else len(allowed)
    kept = np.ones(size, dtype=np.bool_) if allowed is None else allowed.copy()
    for word in wanted.excluded:
        kept[index.having(word)] = False
    for phrase in wanted.excluded_phrases:
        kept[with_phrases(_with_words(index, [phrase], kept), [phrase])] = False
    if wanted.phrases:
        having = with_phrases(_with_words(index, wanted.phrases, kept), wanted.phrases)
        kept = np.zeros(size, dtype=np.bool_)
        kept[having] = True
    return kept


def _with_words(index: WordIndex, phrases: Phrases, allowed: Mask) -> Places:
    """The allowed places whose documents have all words of the phrases, in any order."""
    having = allowed
    for word in {word for phrase in phrases for word in phrase}:
        this = np.zeros(len(allowed), dtype=np.bool_)
        this[index.having(word)] = True
        having = having & this
    return np.flatnonzero(having)
