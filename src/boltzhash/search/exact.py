"""Exact search of packed codes: the nearest, all within a radius, among all rows or some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.arguments import Integer, check
from boltzhash.codes import Codes, check_codes
from boltzhash.search import compiled, uncompiled
from boltzhash.search.hits import Distances, Hits, Rows
from boltzhash.search.multi_index import RadiusSearch
from boltzhash.threads import available_cpus


class ExactIndex:
    """Search codes by Hamming distance; equal distances come in the order of insertion.

    Any number of threads may search one index at a time. The compiled kernel is used if it was
    built (:func:`boltzhash.search.kernel_name` says which path), NumPy otherwise, and faiss if it
    is installed.

    Parameters
    ----------
    codes : uint8 array (n, n_bits / 8)
        Packed codes, as ``transform`` gives them. Read-only and memory-mapped arrays are used in
        place and must not change; an array that can still be written to is copied.
    ids : sequence of str or int, optional
        One per code; row numbers if not given.

    Examples
    --------
    >>> codes = np.array([[0b11110000], [0b11111111], [0b11110001]], dtype=np.uint8)
    >>> index = ExactIndex(codes, ids=["a", "b", "c"])
    >>> hits = index.search(codes[:1], k=2)
    >>> hits.ids.tolist(), hits.distances.tolist()
    ([['a', 'c']], [[0, 1]])
    >>> hits = index.search(codes[:1], k=2, allowed=np.array([False, True, True]))
    >>> hits.ids.tolist(), hits.distances.tolist()
    ([['c', 'b']], [[1, 4]])
    >>> [hits.ids.tolist() for hits in index.within(codes, radius=1)]
    [['a', 'c'], ['b'], ['c', 'a']]
    """

    def __init__(self, codes: Codes, ids: Sequence[str | int] | None = None) -> None:
        check_codes(codes)
        if ids is not None and len(ids) != len(codes):
            raise ValueError(f"there are {len(codes)} codes and {len(ids)} ids")
        self.n_bits = 8 * codes.shape[1]
        self._ids = object_array(ids) if ids is not None else None
        self._codes = _kept(codes)
        self._path = compiled.kernel_name()
        self._is_compiled = self._path != compiled.NONE
        self._faiss = None if self._is_compiled else uncompiled.flat_index(self._codes)
        self._radius_search = RadiusSearch(self._codes)

    def __len__(self) -> int:
        return len(self._codes)

    def search(
        self,
        queries: Codes,
        k: int = 10,
        *,
        allowed: NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> Hits:
        """The k nearest codes of each query; fewer if fewer exist or are allowed, never padding.

        Parameters
        ----------
        queries : uint8 array (n_queries, n_bits / 8)
        k : int
        allowed : bool array (n,), optional
            True for the rows that may be found. It is read, not copied; nor are the codes.
        threads : int, optional
            All cores of the process if not given. Without the kernel, faiss and NumPy decide.
        """
        rows, distances = self.search_rows(queries, k, allowed=allowed, threads=threads)
        return Hits(self._ids_of(rows), distances)

    def within(
        self,
        queries: Codes,
        radius: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> list[Hits]:
        """All codes that differ from a query in at most ``radius`` bits: one :class:`Hits` per query.

        The other arguments are those of :meth:`search`. Who asks for a small radius some hundred times
        makes the index keep tables from then on, of at most 18 bytes a code; answers are the same.
        """
        answers = self.within_rows(queries, radius, allowed=allowed, threads=threads)
        return [Hits(self._ids_of(rows), distances) for rows, distances in answers]

    def search_rows(
        self,
        queries: Codes,
        k: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> tuple[Rows, Distances]:
        """:meth:`search` with row numbers for ids."""
        queries, allowed, threads = self._checked(queries, allowed, threads)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        k = min(k, len(self) if allowed is None else int(np.count_nonzero(allowed)))
        if k == 0 or len(queries) == 0:
            shape = (len(queries), k)
            return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int32)
        if self._is_compiled:
            return compiled.top_k(self._path, self._codes, queries, k, allowed, threads)
        if allowed is None and self._faiss is not None:
            return uncompiled.top_k(self._faiss, queries, k)
        return uncompiled.allowed_top_k(self._codes, queries, k, allowed)

    def within_rows(
        self,
        queries: Codes,
        radius: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        threads: int | None = None,
    ) -> list[tuple[Rows, Distances]]:
        """:meth:`within` with row numbers for ids."""
        queries, allowed, threads = self._checked(queries, allowed, threads)
        check("radius", radius, Integer(0))
        radius = min(int(radius), self.n_bits)
        return self._radius_search.within(queries, radius, allowed, threads)

    def _ids_of(self, rows: Rows) -> NDArray[Any]:
        return rows if self._ids is None else self._ids[rows]

    def _checked(
        self, queries: Codes, allowed: NDArray[np.bool_] | None, threads: int | None
    ) -> tuple[Codes, NDArray[np.bool_] | None, int]:
        check_queries(queries, self.n_bits)
        if allowed is not None:
            _check_allowed(allowed, len(self))
            allowed = np.ascontiguousarray(allowed)
        if threads is not None:
            check("threads", threads, Integer(1))
        return np.ascontiguousarray(queries), allowed, threads or available_cpus()


def check_queries(queries: Codes, n_bits: int) -> None:
    """Refuse what is not packed codes, or not as wide as those of the index."""
    check_codes(queries)
    if 8 * queries.shape[1] != n_bits:
        raise ValueError(
            f"the index holds codes of {n_bits} bits, the queries have "
            f"{8 * queries.shape[1]}: they come from different models"
        )


def read_only(codes: Codes) -> Codes:
    """The same codes as an array that cannot be written to: an index then makes no copy of them."""
    view = codes.view()
    view.flags.writeable = False
    return view


def _kept(codes: Codes) -> Codes:
    """The codes themselves if nobody is meant to write to them, a copy otherwise."""
    if codes.flags.c_contiguous and (isinstance(codes, np.memmap) or not codes.flags.writeable):
        return codes
    return np.array(codes, order="C")


def _check_allowed(allowed: object, n: int) -> None:
    if not isinstance(allowed, np.ndarray) or allowed.dtype != np.bool_ or allowed.shape != (n,):
        came = (
            f"{allowed.dtype} {allowed.shape}" if isinstance(allowed, np.ndarray) else type(allowed)
        )
        raise TypeError(f"allowed must be a bool array ({n},), one per code, got {came}")


def object_array(ids: Sequence[str | int]) -> NDArray[Any]:
    """Ids as they were given, int or str, in an array that rows can index."""
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array
