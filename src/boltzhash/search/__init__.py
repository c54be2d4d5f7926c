"""Searching packed codes by Hamming distance, in the order (distance, insertion)."""

from boltzhash.search.approximate import ApproximateIndex
from boltzhash.search.compiled import kernel_name, kernel_names
from boltzhash.search.exact import ExactIndex
from boltzhash.search.hits import Answer, Hit, Hits
from boltzhash.search.order import rerank
from boltzhash.search.snippet import snippet

__all__ = [
    "Answer",
    "ApproximateIndex",
    "ExactIndex",
    "Hit",
    "Hits",
    "kernel_name",
    "kernel_names",
    "rerank",
    "snippet",
]
