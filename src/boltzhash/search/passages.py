"""Documents that are cut into passages, in the order of their best ones.

An index of words knows how often a word is in a document, and not where: a page of ten thousand words
has many of any question's words somewhere. So the documents that it ranks best, which are few, are read,
and each passage is scored like a document by itself with the names of the whole: BM25 and code together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, hamming
from boltzhash.search.hits import Hit
from boltzhash.search.inverted import Places
from boltzhash.search.ranking import Floats, Scoring
from boltzhash.search.relevance import K1, B
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.blanks import make_tokens
from boltzhash.text.fields import term_counts

if TYPE_CHECKING:
    from boltzhash.encoding.coding import Coded

COMPARED = 50  # documents whose passages are compared with each other


def by_best_passages(
    read: Callable[[Places], Sequence[Coded]],
    places: Places,
    scoring: Scoring,
    code: Codes,
    analyzer: Analyzer,
    length: int,
) -> Iterator[Hit]:
    """Documents at places, best first, put in the order of their best passages: 50, then the next 50.

    So the first of many hits are those of few. ``read`` gives documents with their passages, ``code`` is
    the query's, and ``length`` about how many words a passage has.
    """
    for start in range(0, len(places), COMPARED):
        some = read(np.sort(places[start : start + COMPARED]))
        yield from _ordered(some, scoring, code, analyzer, length)


def _ordered(
    documents: Sequence[Coded], scoring: Scoring, code: Codes, analyzer: Analyzer, length: int
) -> list[Hit]:
    """In the order of (score, distance, as they were given).

    Of a document's passages the one with most score counts, of equals the nearest, then the first.
    """
    owners = np.repeat(np.arange(len(documents)), [len(one.passages) for one in documents])
    passages = [passage for document in documents for passage in document.passages]
    codes = np.frombuffer(b"".join(passage.code for passage in passages), np.uint8)
    codes = codes.reshape(len(passages), -1)
    bm25 = _words_of_passages(documents, owners, scoring, analyzer, length)
    scores, distances = scoring.score(bm25, codes), hamming(code[None], codes)[0]
    order = np.lexsort((np.arange(len(passages)), distances, -scores))
    _, first = np.unique(owners[order], return_index=True)
    best = order[np.sort(first)].tolist()
    found = [documents[owners[row]].document for row in best]
    return [
        Hit(
            document.id,
            int(distances[row]),
            document,
            passages[row].known,
            passages[row].code,
            score=float(scores[row]),
            words=float(bm25[row]),
            passage=passages[row].span,
        )
        for row, document in zip(best, found, strict=True)
    ]


def _words_of_passages(
    documents: Sequence[Coded],
    owners: NDArray[np.int64],
    scoring: Scoring,
    analyzer: Analyzer,
    length: int,
) -> Floats:
    """BM25 of each passage, those of ``length`` words being of mean length."""
    sought = list(scoring.words)
    texts = [
        document.document.text[slice(*passage.span)]
        for document in documents
        for passage in document.passages
    ]
    names = [term_counts(one.document._replace(text=""), analyzer) for one in documents]
    counts, lengths = _counted(texts, sought, analyzer)
    counts += np.array([[own[word] for word in sought] for own in names])[owners]
    weights = np.array([scoring.words[word] for word in sought])
    norms = K1 * (1 - B + B * lengths / length)
    return np.asarray((counts / (counts + norms[:, None])) @ weights)


def _counted(
    texts: list[str], sought: Sequence[str], analyzer: Analyzer
) -> tuple[Floats, NDArray[np.int64]]:
    """How often each word is in each text, (n_texts, n_words), and how long the texts are, (n_texts,).

    >>> counts, lengths = _counted(["Reads a file", "files by files"], ["file", "read"], Analyzer())
    >>> counts.tolist(), lengths.tolist()
    ([[1.0, 1.0], [2.0, 0.0]], [3, 3])
    """
    numbers, sizes, tokens = make_tokens().number(texts)
    having = analyzer.words_having(sought, set(tokens))
    slots = np.full(len(tokens), -1)  # of the tokens that have a word
    rows: list[list[int]] = []
    for number, token in enumerate(tokens):
        if token in having:
            slots[number] = len(rows)
            own = analyzer.terms(token)
            rows.append([own.count(word) for word in sought])
    counts = np.zeros((len(texts), len(sought)))
    if rows:
        found = np.flatnonzero(slots[numbers] >= 0)
        texts_of = np.repeat(np.arange(len(texts)), sizes)[found]
        np.add.at(counts, texts_of, np.array(rows, dtype=np.float64)[slots[numbers[found]]])
    return counts, sizes
