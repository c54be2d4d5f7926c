"""Lengths of documents for BM25, by their counts of terms."""

from __future__ import annotations

from collections import Counter

from boltzhash.text.analyzer import Analyzer


def length(counts: Counter[str], analyzer: Analyzer) -> int:
    """Stop words and exact ids do not count."""
    telling = zip(counts.items(), analyzer.are_telling(list(counts)), strict=True)
    return sum(n for (term, n), is_telling in telling if is_telling and term[0] not in "=~")
