"""The topics of a collection in words, and questions that it can answer.

Topics are groups of documents with codes near each other (k-means on the bits as −1 and +1), named by
the words that are more frequent in a group than outside it. Questions are sentences of its documents.
Both are found on documents spread evenly over the collection, without any randomness: the same
collection is described in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.codes import unpack
from boltzhash.collection import Snapshot
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher
from boltzhash.search.snippet import without_title
from boltzhash.server import answers
from boltzhash.server.distinctive import Occurrences, chosen_words, contrast
from boltzhash.server.hits import title_of
from boltzhash.server.spellings import column_of_spelling
from boltzhash.text.tokens import tokenize

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]

_LOOKED_AT = 3_000  # documents
_MOST_TOPICS = 12
_PER_TOPIC = 8  # a collection of n documents has as many topics as √(n / this)
_ROUNDS = 30
_WORDS = 5
_TRIED = 20  # sentences of a topic that are asked before it is left without a question

_BEGINNING = 600  # characters in which the first sentence of a document is looked for
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n\s*\n")
_PLAIN = re.compile(r"[\w ,'’-]+[.!?。！？]?")  # no names of functions, no markup
_SHORTEST, _LONGEST = 3, 8  # words
_UNSPACED_LENGTHS = 6, 24  # characters of a sentence without spaces


class _Sampled(NamedTuple):
    """Some documents, their groups, and how much each word belongs to each group."""

    documents: list[Document]
    groups: Groups
    nearness: Floats  # (n_documents,), to the middle of their group
    names: list[str]  # of words
    having: Floats  # (n_groups, n_words), documents
    belonging: Floats  # (n_groups, n_words)


def overview(snapshot: Snapshot) -> answers.Overview:
    topics, questions = describe(snapshot)
    return {
        "generation": snapshot.generation,
        "documents": snapshot.state.n_documents,
        "topics": topics,
        "questions": questions,
    }


def describe(snapshot: Snapshot) -> tuple[list[answers.Topic], list[str]]:
    """The topics of a collection, the largest first, and a question about each that has one."""
    sampled = _sample(snapshot)
    if sampled is None:
        return [], []
    topics: list[answers.Topic] = []
    questions: list[str] = []
    sizes = np.bincount(sampled.groups)
    for group in np.argsort(-sizes, kind="stable").tolist():
        words = _topic_words(snapshot, sampled, group)
        if words:
            share = round(float(sizes[group] / sizes.sum()), 4)
            topics.append({"words": words, "share": share})
            questions.append(_question(snapshot, sampled, group) or " ".join(words[:2]))
    return topics, list(dict.fromkeys(questions))


def _sample(snapshot: Snapshot) -> _Sampled | None:
    rows = snapshot.rows()
    known = np.flatnonzero(rows.known)
    chosen = known[:: max(1, -(-len(known) // _LOOKED_AT))]
    documents = snapshot.documents_at(rows.places[chosen])
    if not documents:
        return None
    signs = unpack(rows.codes[chosen]).astype(np.float64) * 2 - 1
    n_topics = int(np.clip(np.sqrt(len(documents) / _PER_TOPIC), 1, _MOST_TOPICS))
    groups, nearness = grouped(signs, n_topics)
    words = Occurrences.in_texts(snapshot.hasher, [document.text for document in documents])
    inside = having(words.has, groups, n_topics)
    sizes = np.bincount(groups, minlength=n_topics)[:, None]
    # The share is one of all documents, not of those outside: so a single group has its commonest words.
    belonging = contrast(inside, sizes, inside.sum(axis=0) - inside, len(documents))
    return _Sampled(documents, groups, nearness, words.names, inside, belonging)


def grouped(points: Floats, n_groups: int) -> tuple[Groups, Floats]:
    """k-means by angle, from points far from each other: each point's group and its nearness to it.

    >>> groups, _ = grouped(np.array([[1.0, 1], [1, 0.9], [-1, -1]]), 2)
    >>> groups.tolist()
    [0, 0, 1]
    """
    centres = _far_apart(points, n_groups)
    groups = np.full(len(points), -1)
    for _ in range(_ROUNDS):
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        nearness = points @ (centres / np.maximum(lengths, 1e-12)).T
        before, groups = groups, nearness.argmax(axis=1)
        if np.array_equal(before, groups):
            break
        for group in np.unique(groups):
            centres[group] = points[groups == group].mean(axis=0)
    return groups, nearness.max(axis=1)


def _far_apart(points: Floats, n: int) -> Floats:
    """The point nearest to the mean, then each time the one farthest from those that were chosen."""
    chosen = [int(np.argmax(points @ points.mean(axis=0)))]
    nearest = points @ points[chosen[0]]
    while len(chosen) < n:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, points @ points[chosen[-1]])
    return points[chosen].copy()


def having(has_word: sparse.csr_matrix, groups: Groups, n_groups: int) -> Floats:
    """Count the documents of each group that have each word, shape (n_groups, n_words).

    >>> has_word = sparse.csr_matrix([[1.0, 1], [1, 0], [0, 1], [0, 1]])
    >>> having(has_word, np.array([0, 0, 1, 1]), 2).tolist()
    [[2.0, 1.0], [0.0, 2.0]]
    """
    n = len(groups)
    members = sparse.csr_matrix((np.ones(n), (groups, np.arange(n))), shape=(n_groups, n))
    return np.asarray((members @ has_word).todense())


def _topic_words(snapshot: Snapshot, sampled: _Sampled, group: int) -> list[str]:
    """The words that belong to this group more than to any other, the strongest first."""
    here = sampled.belonging.argmax(axis=0) == group
    scores = np.where(here, sampled.belonging[group], 0)
    columns, counts = np.arange(len(scores)), sampled.having[group]
    chosen = chosen_words(columns, scores, counts, sampled.names, _WORDS, snapshot.words)
    return [sampled.names[column] for column in chosen]


def _question(snapshot: Snapshot, sampled: _Sampled, group: int) -> str | None:
    """A sentence of a document in the middle of a group, by which that document is found first."""
    candidates = sorted(_sentences(snapshot.hasher, sampled, group))[:_TRIED]
    for _, sentence, row in candidates:
        if snapshot.search(sentence, 1).ids == [sampled.documents[row].id]:
            return sentence
    return None


def _sentences(hasher: Hasher, sampled: _Sampled, group: int) -> Iterator[tuple[float, str, int]]:
    """First sentences of a group's documents that are short, those with most of its words first."""
    assert hasher.tfidf_ is not None
    column_of = column_of_spelling(hasher.tfidf_)
    for row in np.flatnonzero(sampled.groups == group).tolist():
        sentence = first_sentence(sampled.documents[row])
        if sentence is None:
            continue
        words = tokenize(sentence)
        columns = {column_of[word] for word in words if word in column_of}
        strength = np.maximum(sampled.belonging[group][list(columns)], 0).sum()
        if len(columns) >= 2 and strength > 0:
            score = strength * sampled.nearness[row] / np.sqrt(len(words))
            yield -float(score), sentence, row


def first_sentence(document: Document) -> str | None:
    """The first sentence of a text if it is short enough for a question, else None.

    >>> first_sentence(Document("csv", "csv\\n\\nRead and write CSV files. It is simple."))
    'Read and write CSV files'
    >>> first_sentence(Document("a", "See `csv.reader` for what this does."))
    """
    body = without_title(document.text[:_BEGINNING], title_of(document)).strip()
    sentence = " ".join(_SENTENCE_END.split(body, maxsplit=1)[0].split())
    if not _PLAIN.fullmatch(sentence):
        return None
    n_words, n_characters = len(sentence.split()), len(sentence)
    unspaced = n_words == 1 and _UNSPACED_LENGTHS[0] <= n_characters <= _UNSPACED_LENGTHS[1]
    if _SHORTEST <= n_words <= _LONGEST or unspaced:
        return sentence.rstrip(".!?。！？")
    return None
