"""How good codes are: measures of their rankings, of the codes themselves, and one report of both.

A document is relevant to a query when they share at least one label. Labels are bool arrays
(n_documents, n_labels), as :mod:`boltzhash.datasets` gives them. For questions whose answers people
judged there is :func:`evaluate_answers`, with the measures of :mod:`boltzhash.metrics.retrieval`.
Without labels, :func:`agreement_of_codes` measures codes, :func:`evaluate_codes` a collection and
:func:`compare_hashers` several hashers on the same texts.
"""

from boltzhash.metrics import retrieval
from boltzhash.metrics.agreement import agreement_of_codes, codes_of_halves
from boltzhash.metrics.asking import evaluate_answers, ways_of_searching
from boltzhash.metrics.codes import CodeStatistics, bit_correlations, code_statistics
from boltzhash.metrics.codes_report import CodesReport
from boltzhash.metrics.own_texts import compare_hashers, evaluate_codes, variants
from boltzhash.metrics.ranking import (
    average_precision,
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
    "CodesReport",
    "Report",
    "RetrievalReport",
    "agreement_of_codes",
    "average_precision",
    "bit_correlations",
    "code_statistics",
    "codes_of_halves",
    "compare_hashers",
    "evaluate",
    "evaluate_answers",
    "evaluate_codes",
    "holm",
    "ndcg",
    "paired_permutation",
    "precision",
    "precision_within",
    "recall",
    "retrieval",
    "variants",
    "ways_of_searching",
]
