"""The settings that SNUH's authors searched for, for each corpus and length: ``run.sh`` of their code.

https://github.com/J-zin/SNUH. What is not in the table is the same for all of them and in
``SNUH.as_published``. Left out: their seeds; ``alpha``, which changes nothing, since the code joins a
document to all of its neighbours that are not yet in the tree, whatever the order; the bound on the
gradient's length, which boltzhash does not have.
"""

from __future__ import annotations

from typing import Any

# neighbours, trees, temperature, β, batch, learning rate, range of the first weights
_SEARCHED: dict[tuple[str, int], tuple[int, int, float, float, int, float, float]] = {
    ("reuters", 16): (11, 13, 0.7, 0.09, 128, 3e-3, 0.05),
    ("reuters", 32): (15, 10, 0.5, 0.03, 128, 3e-3, 0.1),
    ("reuters", 64): (20, 19, 0.2, 0.05, 32, 5e-4, 0.1),
    ("reuters", 128): (20, 14, 0.3, 0.04, 64, 5e-4, 0.05),
    ("tmc", 16): (10, 10, 0.8, 0.2, 32, 1e-3, 0.01),
    ("tmc", 32): (8, 19, 0.3, 0.1, 128, 1e-3, 0.1),
    ("tmc", 64): (3, 19, 0.1, 0.08, 64, 5e-4, 0.01),
    ("tmc", 128): (7, 10, 0.1, 0.03, 64, 5e-4, 0.01),
    ("ng20", 16): (7, 17, 0.3, 0.1, 128, 1e-3, 0.01),
    ("ng20", 32): (10, 20, 0.1, 0.1, 128, 1e-3, 0.05),
    ("ng20", 64): (15, 13, 0.1, 0.05, 128, 1e-3, 0.05),
    ("ng20", 128): (7, 18, 0.1, 0.05, 128, 5e-4, 0.05),
}


def _arguments(
    neighbours: int,
    trees: int,
    temperature: float,
    beta: float,
    batch: int,
    rate: float,
    start: float,
) -> dict[str, Any]:
    """Of ``SNUH.as_published``, whose KL weight is twice the β of the authors' code."""
    return {
        "graph__neighbours": neighbours,
        "graph__trees": trees,
        "temperature": temperature,
        "objective__kl_weight": (2 * beta, 2 * beta),
        "training__batch_size": batch,
        "training__learning_rate": rate,
        "initial_range": start,
    }


SEARCHED = {of: _arguments(*numbers) for of, numbers in _SEARCHED.items()}
