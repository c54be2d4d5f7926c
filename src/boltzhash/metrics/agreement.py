"""How good codes are, measured without labels: by what is near to the two halves of documents.

The words of a document are dealt out to two halves that have none in common. Where codes mean something,
the codes of both are near to the same documents.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.codes import Codes, check_codes
from boltzhash.hashers import Hasher
from boltzhash.hashers.shared.halves import halves, n_nearest
from boltzhash.metrics.ties import Distances, distances
from boltzhash.text.tfidf import unit_rows

Values = NDArray[np.float64]
RowNumbers = NDArray[np.int64]


def agreement_of_codes(
    one: Codes, other: Codes, *, codes: Codes, k: int | None = None, own: RowNumbers | None = None
) -> Values:
    """Of the k documents nearest to one half, the share that is nearest to the other half as well.

    Parameters
    ----------
    one, other : uint8 arrays (n_documents, n_bits / 8)
        Packed codes of the halves of some documents; :func:`codes_of_halves` makes them.
    codes : uint8 array (n, n_bits / 8)
        Packed codes of the documents that may be near.
    k : int, optional
        300 if not given, or a thirtieth of the documents that may be near. Codes that say nothing
        agree on k in n of them.
    own : int array (n_documents,), optional
        Which of ``codes`` the halves come from, if they do: that document is not counted as near.

    Documents at the distance of the k-th share the remaining places evenly: it is the expectation over
    random orders of ties.

    Returns
    -------
    float64 array (n_documents,)

    Examples
    --------
    >>> codes = np.array([[0], [1], [3], [255]], dtype=np.uint8)
    >>> agreement_of_codes(codes[:1], codes[3:], codes=codes, k=2)  # 0 and 1; 255 and 3
    array([0.])
    >>> agreement_of_codes(codes[:1], codes[1:2], codes=codes, k=2)  # 0 and 1; 1, and half of 0 and of 3
    array([0.75])
    >>> agreement_of_codes(codes[:1], codes[1:2], codes=codes, k=2, own=np.array([0]))
    array([1.])
    """
    _check(one, other, codes, own)
    offered = len(codes) - (own is not None)
    k = n_nearest(offered) if k is None else k
    if not 1 <= k <= offered:
        raise ValueError(f"k must be between 1 and the {offered} documents, got {k}")
    n_bits, values = 8 * codes.shape[1], []
    for (rows, first), (_, second) in zip(
        distances(one, codes), distances(other, codes), strict=True
    ):
        itself = None if own is None else own[rows]
        near = [_is_near(found, n_bits, k, itself) for found in (first, second)]
        values.append((near[0] * near[1]).sum(axis=1) / k)
    return np.concatenate(values) if values else np.empty(0)


def codes_of_halves(hasher: Hasher, rows: sparse.csr_matrix) -> tuple[Codes, Codes]:
    """The packed codes of both halves of documents, from their tf-idf (n, n_words).

    A document of one word has none in its first half, and the code of that means nothing.

    >>> from boltzhash import LSH
    >>> hasher = LSH(16).fit(["bread and butter", "butter and jam", "jam and tea"])
    >>> one, other = codes_of_halves(hasher, hasher.tfidf(["bread with jam"]))
    >>> words = hasher.encode(["bread", "jam"])
    >>> sorted([one[0].tolist(), other[0].tolist()]) == sorted(words.tolist())
    True
    """
    both = halves(rows, np.random.default_rng(0))
    one, other = (hasher.encode(unit_rows(half)) for half in both)
    return one, other


def _is_near(found: Distances, n_bits: int, k: int, own: RowNumbers | None) -> Values:
    """The probability that each document is among the k nearest, from distances (n_rows, n).

    >>> _is_near(np.array([[0, 1, 1, 2]], dtype=np.uint16), 8, 2, None)
    array([[1. , 0.5, 0.5, 0. ]])
    """
    rows, shape = np.arange(len(found)), (len(found), n_bits + 1)
    places = found + (rows * shape[1])[:, None]
    there = np.bincount(places.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
    if own is not None:
        there[rows, found[rows, own]] -= 1
    nearer = there.cumsum(axis=1) - there
    share = np.clip((k - nearer) / np.maximum(there, 1), 0, 1)
    near: Values = np.take_along_axis(share, found.astype(np.int64), axis=1)
    if own is not None:
        near[rows, own] = 0
    return near


def _check(one: Codes, other: Codes, codes: Codes, own: RowNumbers | None) -> None:
    for name, array in (("one", one), ("other", other), ("codes", codes)):
        if check_codes(array).shape[1] != codes.shape[1]:
            raise ValueError(
                f"{name} has {8 * array.shape[1]} bits and codes {8 * codes.shape[1]}: they come "
                "from different models"
            )
    for name, rows in (("other", other), ("own", own)):
        if rows is not None and len(rows) != len(one):
            raise ValueError(f"there are {len(one)} first halves and {len(rows)} rows of {name}")
