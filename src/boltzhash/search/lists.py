"""Sorting codes into lists around centres: k-means under the Hamming distance, and faiss's lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.errors import needs_extra
from boltzhash.search.exact import ExactIndex, read_only

CODES_A_CENTRE = 32  # that training sees
ROUNDS = 8
ROWS_AT_A_TIME = 1 << 20


def import_faiss() -> Any:
    """faiss, or an error that says what to install."""
    try:
        import faiss
    except ImportError:
        raise needs_extra("ApproximateIndex", "faiss", "approximate") from None
    return faiss


def n_lists_for(n: int) -> int:
    """A power of two near 2 √n: looking for lists and looking through them then cost about the same.

    >>> [n_lists_for(n) for n in (0, 500, 10_000, 1_000_000, 10_000_000)]
    [1, 1, 256, 2048, 8192]
    """
    if n < 1000:
        return 1
    return int(2 ** np.round(np.log2(2 * np.sqrt(n))))


def centres_of(
    codes: Codes, n_lists: int, held_out: NDArray[np.int64], rng: np.random.Generator
) -> Codes:
    """At most ``n_lists`` centres, learned from a sample of the rows that are not held out."""
    size = min(len(codes), n_lists * CODES_A_CENTRE + len(held_out))
    rows = np.sort(rng.choice(len(codes), size, replace=False))
    sample = np.ascontiguousarray(codes[np.setdiff1d(rows, held_out, assume_unique=True)])
    different = np.unique(sample, axis=0)
    if len(different) <= n_lists:
        return different if len(different) else np.zeros((1, codes.shape[1]), dtype=np.uint8)
    centres = different[np.sort(rng.choice(len(different), n_lists, replace=False))]
    for _ in range(ROUNDS):
        centres = _majorities(sample, nearest_centre(sample, centres), centres)
    return centres


def nearest_centre(codes: Codes, centres: Codes) -> NDArray[np.int64]:
    """The number of the centre nearest to each code, the first of those at one distance."""
    rows, _ = ExactIndex(read_only(centres)).search_rows(codes, 1)
    return rows[:, 0]


def _majorities(codes: Codes, nearest: NDArray[np.int64], centres: Codes) -> Codes:
    """Each centre moved to the majority of each bit of its codes; one without codes stays."""
    order = np.argsort(nearest, kind="stable")
    used, first, counts = np.unique(nearest[order], return_index=True, return_counts=True)
    on = np.add.reduceat(np.unpackbits(codes[order], axis=1), first, axis=0, dtype=np.int32)
    moved = centres.copy()
    moved[used] = np.packbits(2 * on > counts[:, None], axis=1)
    return moved


def fill_lists(codes: Codes, centres: Codes) -> Any:
    """A faiss ``IndexBinaryIVF`` with each code in the list of its nearest centre.

    ``use_heap`` stays on: without it faiss 1.15.1 answers with nothing.
    """
    faiss = import_faiss()
    quantizer: Any = faiss.IndexBinaryFlat(8 * codes.shape[1])
    quantizer.add(centres)
    lists: Any = faiss.IndexBinaryIVF(quantizer, 8 * codes.shape[1], len(centres))
    quantizer.this.disown()  # the lists own it from here on, even when they are saved
    lists.own_fields = True
    lists.is_trained = True
    for start in range(0, len(codes), ROWS_AT_A_TIME):
        block = np.ascontiguousarray(codes[start : start + ROWS_AT_A_TIME])
        rows = np.arange(start, start + len(block), dtype=np.int64)
        nearest = np.ascontiguousarray(nearest_centre(block, centres))
        lists.add_core(
            len(block), faiss.swig_ptr(block), faiss.swig_ptr(rows), faiss.swig_ptr(nearest)
        )
    return lists
