"""Bits ↔ packed bytes, and the Hamming distance between packed codes.

A dtype says what an array is: ``bool (n, n_bits)`` are bits, ``uint8 (n, n_bits/8)`` are packed codes
with bit 0 the most significant bit of byte 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
Codes = NDArray[np.uint8]

MAX_BITS = 4096


def check_n_bits(n_bits: object) -> int:
    """Return ``n_bits`` if codes can have that many bits; raise otherwise."""
    valid = isinstance(n_bits, int | np.integer) and not isinstance(n_bits, bool)
    if not valid or not 8 <= n_bits <= MAX_BITS or n_bits % 8:  # type: ignore[operator]  # int
        raise ValueError(f"n_bits must be a multiple of 8 between 8 and {MAX_BITS}, got {n_bits!r}")
    return int(n_bits)  # type: ignore[call-overload, no-any-return]  # checked above


def pack(bits: Bits) -> Codes:
    """Pack bits, bool (n, n_bits), into bytes, uint8 (n, n_bits / 8).

    >>> pack(np.array([[True, False, False, False, False, False, False, True]]))
    array([[129]], dtype=uint8)
    """
    if bits.dtype != np.bool_ or bits.ndim != 2:
        raise TypeError(
            f"bits must be a bool array (n, n_bits), got {bits.dtype} with shape {bits.shape}"
        )
    check_n_bits(bits.shape[1])
    return np.packbits(bits, axis=1)


def check_codes(codes: Codes) -> Codes:
    """Return ``codes`` if they are packed codes; raise otherwise, bits included."""
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8 or codes.ndim != 2:
        came = f"{codes.dtype} {codes.shape}" if isinstance(codes, np.ndarray) else type(codes)
        raise TypeError(f"codes must be packed: a uint8 array (n, n_bits/8), got {came}")
    check_n_bits(codes.shape[1] * 8)
    return codes


def unpack(codes: Codes) -> Bits:
    """Unpack bytes, uint8 (n, n_bits / 8), into bits, bool (n, n_bits).

    >>> unpack(np.array([[129]], dtype=np.uint8)).astype(int)
    array([[1, 0, 0, 0, 0, 0, 0, 1]])
    """
    return np.unpackbits(check_codes(codes), axis=1).view(np.bool_)


def hamming(queries: Codes, codes: Codes) -> NDArray[np.int32]:
    """Hamming distance of every query to every code: the slow, plain reference.

    Parameters
    ----------
    queries : uint8 array (n_queries, n_bits / 8)
    codes : uint8 array (n, n_bits / 8)

    Returns
    -------
    int32 array (n_queries, n)

    >>> hamming(np.array([[129]], dtype=np.uint8), np.array([[1], [129]], dtype=np.uint8))
    array([[1, 0]], dtype=int32)
    """
    check_codes(queries)
    check_codes(codes)
    if queries.shape[1] != codes.shape[1]:
        raise ValueError(
            f"queries have {8 * queries.shape[1]} bits and codes {8 * codes.shape[1]}: "
            "they come from different models"
        )
    distances = np.empty((len(queries), len(codes)), dtype=np.int32)
    for query, row in zip(queries, distances, strict=True):
        np.bitwise_count(codes ^ query).sum(axis=1, dtype=np.int32, out=row)
    return distances


def distinct(codes: Codes) -> int:
    """How many different codes there are, of packed ones (n, n_bits / 8).

    >>> distinct(np.array([[1], [1], [2]], dtype=np.uint8))
    2
    """
    if len(codes) == 0:
        return 0
    n, n_bytes = codes.shape
    words = np.zeros((n, -(-n_bytes // 8) * 8), dtype=np.uint8)
    words[:, :n_bytes] = codes
    columns = words.view(np.uint64)
    ordered = columns[np.lexsort(columns.T)]  # ten times as fast as np.unique over rows
    return 1 + int((ordered[1:] != ordered[:-1]).any(axis=1).sum())


def bit_balance(bits: Bits) -> float:
    """How evenly bits are used: 1 when each is on in half of the documents, 0 when none ever changes.

    The mean over the bits, bool (n, n_bits), of 1 − |2 p − 1|, where p is the share of documents
    that have the bit on.

    >>> bit_balance(np.array([[True, True], [False, True]]))
    0.5
    """
    return float(np.mean(1 - np.abs(2 * bits.mean(axis=0) - 1)))
