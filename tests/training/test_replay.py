"""Training on a GPU: recorded steps against the same steps unrecorded, and against a CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash import SemanticHasher
from boltzhash.training import replay
from composed_steps import last_terms, tfidf_of_topics

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
CHANGES: list[dict[str, Any]] = [
    {},
    {"rank": 4, "n_components": 3, "network__networks": 2},
    {"neighbours__count": 0, "neighbours__contrast": 0.0},
    {"objective__gradient": "gumbel-softmax"},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_replayed_steps_are_the_steps(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded or not, the same bytes; and again the same."""
    tfidf = sparse.random(1055, 400, 0.05, format="csr", random_state=0, dtype=np.float64)
    hasher = SemanticHasher(16).set_params(
        training__epochs=3, training__batch_size=20, training__device="cuda", **changes
    )
    prints = [hasher.fit(tfidf).fingerprint() for _ in range(2)]
    monkeypatch.setattr(replay, "WARM_UP", 10**9)
    assert {*prints, hasher.fit(tfidf).fingerprint()} == {prints[0]}


@pytest.mark.parametrize("changes", CHANGES)
def test_a_gpu_learns_what_a_cpu_does(changes: dict[str, Any]) -> None:
    """Chance differs, so the terms of the last epochs are near, not equal."""
    steps = {"training__epochs": 20, "training__batch_size": 100, **changes}
    on_gpu, on_cpu = (
        SemanticHasher(32).set_params(**steps, training__device=device).fit(tfidf_of_topics())
        for device in ("cuda", "cpu")
    )
    assert last_terms(on_gpu) == pytest.approx(last_terms(on_cpu), rel=0.03)
