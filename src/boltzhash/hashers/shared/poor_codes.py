"""What a user should know after a fit whose codes will not find much."""

from __future__ import annotations

import numpy as np

from boltzhash.codes import Codes, distinct, unpack

ENOUGH = 100  # documents; fewer prove nothing
FEW_CODES = 0.1  # of as many different ones as there could be
CONSTANT_BITS = 0.125
FEW_WORDS = 0.5  # of those of the documents


def complaints(codes: Codes, coverage: float | None) -> list[str]:
    """What is wrong with the codes of the training documents, and what to do; empty if nothing is.

    Parameters
    ----------
    codes : uint8 array (n_documents, n_bits / 8)
    coverage : float or None
        Which share of the documents' words the vocabulary has; None if they came as a matrix.

    Examples
    --------
    >>> complaints(np.zeros((200, 1), dtype=np.uint8), 0.9)[0]
    '200 documents have only 1 different codes: many will be found at the same distance; are the texts \
what they should be, or the same again and again?'
    """
    n, n_bits = len(codes), codes.shape[1] * 8
    if n < ENOUGH:
        return []
    found = []
    n_codes, most = distinct(codes), min(n, 2**n_bits)
    if n_codes < FEW_CODES * most:
        found.append(
            f"{n} documents have only {n_codes} different codes: many will be found at the same "
            "distance; are the texts what they should be, or the same again and again?"
        )
    share = unpack(codes).mean(axis=0)
    n_constant = int(np.count_nonzero((share == 0) | (share == 1)))
    if n_constant > CONSTANT_BITS * n_bits:
        found.append(
            f"{n_constant} of {n_bits} bits are the same in all documents: fewer bits would do, or "
            "more documents are needed to learn from"
        )
    if coverage is not None and coverage < FEW_WORDS:
        found.append(
            f"the vocabulary has {coverage:.0%} of the documents' words: raise max_words, or lower "
            "min_df"
        )
    return found
