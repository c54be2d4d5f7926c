"""How good codes are: measures of their rankings, of the codes themselves, and one report of both.

A document is relevant to a query when they share at least one label. Labels are bool arrays
(n_documents, n_labels), as :mod:`boltzhash.datasets` gives them.
"""

from boltzhash.metrics.codes import CodeStatistics, bit_correlations, code_statistics
from boltzhash.metrics.ranking import (
    average_precision,
    expected_precision,
    ndcg,
    precision,
    precision_within,
    recall,
)
from boltzhash.metrics.report import Report, evaluate
from boltzhash.metrics.significance import holm, paired_permutation

__all__ = [
    "CodeStatistics",
    "Report",
    "average_precision",
    "bit_correlations",
    "code_statistics",
    "evaluate",
    "expected_precision",
    "holm",
    "ndcg",
    "paired_permutation",
    "precision",
    "precision_within",
    "recall",
]
