from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def add_scores(
    places: Array,
    counts: Array,
    starts: Array,
    ends: Array,
    weights: Array,
    norms: Array,
    owners: Array | None,
    owner: int,
    scores: Array,
) -> None:
    """Add weights · tf / (tf + norm) of postings starts..ends of each word to scores, by place."""

def count_owned(places: Array, starts: Array, ends: Array, owners: Array, owner: int) -> bytearray:
    """How many postings of each word are of documents that ``owner`` owns, int64."""

def best(scores: Array, allowed: Array | None, n: int) -> bytearray:
    """The n allowed places with the highest scores above 0, of equals the first; int64, in order."""

def expand(
    tokens: Array,
    n_tokens: Array,
    rows: Array,
    times: Array,
    starts: Array,
    sizes: Array,
    words: Array,
) -> bytearray:
    """Words, rows and times of the tokens of texts, int64 (3, n)."""

def invert(
    numbers: Array, rows: Array, times: Array, n_words: int, n_rows: int
) -> tuple[bytearray, bytearray, bytearray]:
    """Ends of the postings of each word (int64), their rows (int64) and counts (uint8)."""

def digests(words: list[str]) -> bytearray:
    """64 bits of each word."""
