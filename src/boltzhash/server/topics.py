"""Bits as topics: the words of their two sides, and which bits belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Bits
from boltzhash.server.distinctive import Occurrences, chosen_words, contrast
from boltzhash.text.words import Words

N_WORDS = 12
_MOST_ORDERED = 512  # bits whose order within groups is the best of all; more would take long

Matrix = NDArray[np.float64]


class SideWords(NamedTuple):
    """For each bit, the words of its two sides."""

    on: list[list[str]]
    off: list[list[str]]


class Group(NamedTuple):
    """Bits that go together, in an order that puts the most alike side by side.

    Some of them are turned around (``reversed``), so that all of them have the documents that they have
    in common on the same side.
    """

    bits: list[int]
    reversed: set[int]
    words: list[str]
    against: list[str]


def side_words(occurrences: Occurrences, bits: Bits, cut: Words) -> SideWords:
    """Words that set the documents with a bit on apart from those with it off, and the reverse.

    A word counts the less the more other bits it tells apart as well: so it is distinctive of a bit.
    """
    n_on = bits.sum(axis=0)[:, None]
    having = np.asarray(occurrences.has.sum(axis=0)).ravel()
    on = np.asarray((occurrences.has.T @ bits.astype(np.float64)).T)
    counts = (on, having - on)
    sizes = (n_on, len(bits) - n_on)
    scores = [
        np.maximum(contrast(counts[one], sizes[one], counts[1 - one], sizes[1 - one]), 0)
        for one in (0, 1)
    ]
    all_bits = np.sqrt(sum(np.square(side).sum(axis=0) for side in scores))
    columns = np.arange(len(having))
    return SideWords(
        *(
            [
                [
                    occurrences.names[column]
                    for column in chosen_words(
                        columns,
                        np.square(row) / np.maximum(all_bits, 1e-12),
                        count,
                        occurrences.names,
                        N_WORDS,
                        cut,
                    )
                ]
                for row, count in zip(side, side_counts, strict=True)
            ]
            for side, side_counts in zip(scores, counts, strict=True)
        )
    )


def grouped(correlations: Matrix, words: SideWords) -> list[Group]:
    """All bits in groups, by how strongly they are correlated, whichever the sign."""
    return [_named(group, correlations, words) for group in _clusters(correlations)]


def _clusters(correlations: Matrix) -> list[list[int]]:
    """
    >>> r = np.array([[1, 0.1, -0.9, 0], [0.1, 1, 0, 0.8], [-0.9, 0, 1, 0], [0, 0.8, 0, 1]])
    >>> sorted(sorted(group) for group in _clusters(r))
    [[0, 2], [1, 3]]
    """
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    n_bits = len(correlations)
    apart = 1 - np.abs(correlations)
    np.fill_diagonal(apart, 0)
    tree = linkage(
        squareform(apart, checks=False), "complete", optimal_ordering=n_bits <= _MOST_ORDERED
    )
    group_of = fcluster(tree, max(2, round(np.sqrt(n_bits))), "maxclust")
    groups: dict[int, list[int]] = {}
    for bit in leaves_list(tree).tolist():
        groups.setdefault(int(group_of[bit]), []).append(bit)
    return list(groups.values())


def _named(bits: list[int], correlations: Matrix, words: SideWords) -> Group:
    among = correlations[np.ix_(bits, bits)]
    loadings = np.linalg.eigh(among)[1][:, -1]  # of the direction in which they vary most together
    loadings *= np.sign(loadings[np.argmax(np.abs(loadings))]) or 1
    turned = {bit for bit, loading in zip(bits, loadings, strict=True) if loading < 0}
    front = [words.off[bit] if bit in turned else words.on[bit] for bit in bits]
    back = [words.on[bit] if bit in turned else words.off[bit] for bit in bits]
    return Group(bits, turned, _common(front, back), _common(back, front))


def _common(lists: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> list[str]:
    """The words that stand first in most of the lists, and not in the others.

    >>> _common([["csv", "file"], ["csv", "disk"]], [["disk", "socket"]])
    ['csv', 'file']
    """
    counts: Counter[str] = Counter()
    for sign, some in ((1, lists), (-1, others)):
        for words in some:
            for place, word in enumerate(words):
                counts[word] += sign / (place + 2)  # type: ignore[assignment]
    return [word for word, count in counts.most_common(N_WORDS) if count > 0]
