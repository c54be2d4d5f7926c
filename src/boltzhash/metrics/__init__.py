"""How good codes are: measures of their rankings, of the codes themselves, and one report of both.

A document is relevant to a query when they share at least one label. Labels are bool arrays
(n_documents, n_labels), as :mod:`boltzhash.datasets` gives them. For questions whose answers people
judged there is :func:`evaluate_answers`, with the measures of :mod:`boltzhash.metrics.retrieval`.
"""

from boltzhash.metrics import retrieval
from boltzhash.metrics.asking import evaluate_answers, ways_of_searching
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
from boltzhash.metrics.retrieval_report import RetrievalReport
from boltzhash.metrics.significance import holm, paired_permutation

__all__ = [
    "CodeStatistics",
    "Report",
    "RetrievalReport",
    "average_precision",
    "bit_correlations",
    "code_statistics",
    "evaluate",
    "evaluate_answers",
    "expected_precision",
    "holm",
    "ndcg",
    "paired_permutation",
    "precision",
    "precision_within",
    "recall",
    "retrieval",
    "ways_of_searching",
]
