"""Searching packed codes by Hamming distance, in the order (distance, insertion)."""

from boltzhash.search.approximate import ApproximateIndex
from boltzhash.search.compiled import kernel_name, kernel_names
from boltzhash.search.exact import ExactIndex, Hits
from boltzhash.search.rerank import rerank
from boltzhash.search.snippet import snippet

__all__ = [
    "ApproximateIndex",
    "ExactIndex",
    "Hits",
    "kernel_name",
    "kernel_names",
    "rerank",
    "snippet",
]
