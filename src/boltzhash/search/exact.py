"""Exact top-k over packed codes, through faiss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes, check_codes


class Hits(NamedTuple):
    """The nearest documents of each query: (n_queries, min(k, n_documents)), nearest first."""

    ids: NDArray[Any]
    distances: NDArray[np.int32]


class ExactIndex:
    """Search codes by Hamming distance; equal distances come in the order of insertion.

    Parameters
    ----------
    codes : uint8 array (n, n_bits / 8)
        Packed codes, as ``transform`` gives them.
    ids : sequence of str or int, optional
        One a code; row numbers where not given.

    Examples
    --------
    >>> codes = np.array([[0b11110000], [0b11111111], [0b11110001]], dtype=np.uint8)
    >>> index = ExactIndex(codes, ids=["a", "b", "c"])
    >>> hits = index.search(codes[:1], k=2)
    >>> hits.ids.tolist(), hits.distances.tolist()
    ([['a', 'c']], [[0, 1]])
    """

    def __init__(self, codes: Codes, ids: Sequence[str | int] | None = None) -> None:
        check_codes(codes)
        if ids is not None and len(ids) != len(codes):
            raise ValueError(f"there are {len(codes)} codes and {len(ids)} ids")
        self.n_bits = 8 * codes.shape[1]
        self._ids = _object_array(ids) if ids is not None else None
        self._faiss = _flat_index(codes)

    def __len__(self) -> int:
        return int(self._faiss.ntotal)

    def search(self, queries: Codes, k: int = 10) -> Hits:
        """The k nearest codes of each query; fewer where the index holds fewer, never padding."""
        rows, distances = self.search_rows(queries, k)
        return Hits(rows if self._ids is None else self._ids[rows], distances)

    def search_rows(self, queries: Codes, k: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Row numbers and distances."""
        check_codes(queries)
        if 8 * queries.shape[1] != self.n_bits:
            raise ValueError(
                f"the index holds codes of {self.n_bits} bits, the queries have "
                f"{8 * queries.shape[1]}: they come from different models"
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(k, len(self))
        if k == 0 or len(queries) == 0:
            shape = (len(queries), k)
            return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int32)
        # faiss keeps the smaller row number among equal distances; a test compares it with NumPy's
        # stable sort, so that an update that changes this is noticed.
        distances, rows = self._faiss.search(np.ascontiguousarray(queries), k)
        return rows, distances


def _flat_index(codes: Codes) -> Any:
    import faiss

    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(np.ascontiguousarray(codes))
    return index


def _object_array(ids: Sequence[str | int]) -> NDArray[Any]:
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array
